// An explanation as a tree: every part with its truth, the values that it met, and a note where one helps.

import { make, unseen } from "./elements.js";
import { compact } from "./json.js";

const TRUTHS = new Map([[true, ["true", "✓"]], [false, ["false", "✗"]], [null, ["unknown", "?"]]]);
const MOST_VALUES = 8;

/** The tree of an explanation. */
export function treeElement(part) {
  return make("ul", { class: "tree" }, branch(part));
}

function branch(part) {
  const [name, mark] = TRUTHS.get(part.truth ?? null);
  return make("li", {},
    make("div", { class: `part ${name}` },
      make("span", { class: "truth" }, make("span", { "aria-hidden": "true" }, mark), unseen(`${name}: `)),
      make("div", {},
        make("code", {}, part.text), " ",
        part.values?.length ? make("span", { class: "met" }, part.values.map(met).join(", ")) : null, " ",
        part.note ? make("span", { class: "note" }, part.note) : null,
      ),
    ),
    part.parts?.length ? make("ul", {}, part.parts.map(branch)) : null,
  );
}

/** The values that a part met, in words. */
export function met({ attribute, values, picked }) {
  if (values.length === 0) return `${attribute} is missing`;
  const told = values.slice(0, MOST_VALUES).map(shown).join(", ");
  if (values.length === 1) return `${attribute} is ${told}`;
  const more = values.length > MOST_VALUES ? `, and ${values.length - MOST_VALUES} more` : "";
  const here = picked === undefined || picked === null ? "" : `, here ${shown(picked)}`;
  return `${attribute} is one of {${told}${more}}${here}`;
}

function shown(value) {
  return typeof value === "string" ? `'${value}'` : compact(value);
}
