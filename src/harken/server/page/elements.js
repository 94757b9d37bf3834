// Elements of the page. Text from outside becomes text nodes, never markup.

/** The element with this id. */
export function at(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no element ${id}`);
  return found;
}

/**
 * A new element. A property that is a function listens to the event of that name; `true` sets an attribute without a
 * value; null and false leave one out. Children that are not elements become text.
 */
export function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, String(value));
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** A paragraph of a kind that the style sheet names. */
export function paragraph(kind, ...children) {
  return make("p", { class: kind }, ...children);
}

/** A button that works: while its action runs it cannot be pressed again. */
export function button(text, action, properties = {}) {
  const made = make("button", { type: "button", ...properties }, text);
  made.addEventListener("click", () => whileBusy(made, action));
  return made;
}

/** Runs an action with its button disabled, and gives the focus back if the button had it. */
export async function whileBusy(pressed, action) {
  if (pressed.disabled) return;
  const hadFocus = document.activeElement === pressed;
  pressed.disabled = true;
  try {
    await action();
  } finally {
    pressed.disabled = false;
    if (hadFocus && pressed.isConnected && document.activeElement === document.body) pressed.focus();
  }
}

/** A button that copies a text, and says whether that worked. */
export function copyButton(text, what, label = "Copy") {
  const made = button(label, async () => {
    made.textContent = (await copied(text)) ? "Copied" : "The browser forbids it";
    setTimeout(() => (made.textContent = label), 3000);
  });
  made.append(unseen(` ${what}`));
  made.setAttribute("aria-live", "polite");
  return made;
}

/** Copies a text, and tells whether it could. Without TLS there is no clipboard, but a selection can be copied. */
async function copied(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text).then(() => true, () => false);
  const field = make("textarea", { class: "unseen" });
  field.value = text;
  document.body.append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  return done;
}

/** Text that only screen readers read. */
export function unseen(text) {
  return make("span", { class: "unseen" }, text);
}
