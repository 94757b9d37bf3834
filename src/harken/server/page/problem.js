// A problem as the reader sees it: what is wrong, where, and what to write instead.

import { make } from "./elements.js";

/** What a box shows of a problem: title, place, excerpt and hint. */
export function problemElement(problem) {
  const place = placeOf(problem);
  return make("div", { class: "problem" },
    make("p", {}, make("b", {}, place ? `${place}: ` : ""), sentence(problem.message)),
    problem.excerpt ? make("pre", { class: "excerpt" }, problem.excerpt) : null,
    problem.hint ? make("p", { class: "hint" }, make("b", {}, "Hint: "), problem.hint) : null,
    problem.retryAfter ? make("p", {}, `Try again in ${problem.retryAfter} s.`) : null,
    rejectedList(problem.rejected ?? []),
    problem.status >= 500 && problem.requestId ? make("p", { class: "soft" }, `request ${problem.requestId}`) : null,
  );
}

/** Shows in a box what an action threw. Throws on what is no problem of the server's: that is an error of the page. */
export function showProblem(box, error) {
  if (error.name === "AbortError") return;
  box.replaceChildren(problemElement(error));
  if (error.status === undefined) throw error;
}

/** The rejected events of an answer, each with its place; null where there are none. */
export function rejectedList(rejected) {
  if (rejected.length === 0) return null;
  return make("ol", { class: "rejected" }, rejected.slice(0, 20).map((each) => make("li", {},
    make("p", {}, make("b", {}, `Event ${each.position + 1}: `), each.message),
    each.excerpt ? make("pre", { class: "excerpt" }, each.excerpt) : null,
    each.hint ? make("p", { class: "hint" }, make("b", {}, "Hint: "), each.hint) : null,
  )));
}

/** "Line 1, column 9", or "". */
export function placeOf(problem) {
  if (!problem.line) return "";
  return problem.column ? `Line ${problem.line}, column ${problem.column}` : `Line ${problem.line}`;
}

function sentence(text) {
  return text ? text[0].toUpperCase() + text.slice(1) : "";
}
