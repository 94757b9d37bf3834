// JSON that keeps whole numbers as they were written: beyond 2^53 JavaScript's own numbers would round them.

const EXACT = typeof JSON.rawJSON === "function";

/** The value of a JSON text. Throws SyntaxError. */
export function read(text) {
  return EXACT ? JSON.parse(text, exact) : JSON.parse(text);
}

function exact(name, value, context) {
  const rounded = typeof value === "number" && !Number.isSafeInteger(value) && /^-?\d+$/.test(context?.source ?? "");
  return rounded ? JSON.rawJSON(context.source) : value;
}

/** A value on one line. */
export function compact(value) {
  return JSON.stringify(value);
}

/** A value on indented lines. */
export function pretty(value) {
  return JSON.stringify(value, null, 2);
}
