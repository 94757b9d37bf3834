// Events in lists: one line each, which opens to the whole event and what can be done with it.

import { make, paragraph, unseen } from "./elements.js";
import { compact, pretty } from "./json.js";
import { kept } from "./tickets.js";
import { counted, timeElement } from "./words.js";

const LONGEST_LINE = 400;
const MOST_IDS = 20;

/** An event on indented lines: JSON, or XML as it came. */
export function wholeEvent(event) {
  return typeof event === "string" ? event : pretty(event);
}

/** An event on one line, cut where it is long. */
export function lineOf(event) {
  const line = typeof event === "string" ? event.replace(/\s+/g, " ").trim() : compact(event);
  return line.length > LONGEST_LINE ? `${line.slice(0, LONGEST_LINE)}…` : line;
}

/** A row of a list. `aside` stands at its end; `below` is what the opened row shows under the event. */
export function eventRow({ time, event, aside = null, below = [], opened = null }) {
  const details = make("details", { class: "row" },
    make("summary", {},
      time ? timeElement(time) : null,
      make("code", { class: "oneline" }, lineOf(event)),
      aside,
    ),
  );
  details.addEventListener("toggle", () => {
    if (!details.open || details.childElementCount > 1) return;
    details.append(make("div", { class: "opened" }, make("pre", { tabindex: "0" }, wholeEvent(event)), below));
    opened?.();
  });
  return make("li", {}, details);
}

/** How many subscriptions an event matched. */
export function matchCount(count) {
  return make("span", { class: count > 0 ? "count some" : "count" }, count > 0 ? counted(count, "match") : "no match");
}

/** The ids that an event matched, those first whose tickets are kept here. `all` is how many there are in truth. */
export function matchedIds(ids, all) {
  if (all === 0) return paragraph("soft", "No subscription matched.");
  const mine = kept();
  const sorted = [...ids].sort((a, b) => Number(mine.has(b)) - Number(mine.has(a))).slice(0, MOST_IDS);
  const more = all - sorted.length;
  return make("ul", { class: "chips", "aria-label": "Matched subscriptions" },
    sorted.map((id) => chip(id, mine.has(id))),
    more > 0 ? make("li", { class: "soft" }, `and ${more.toLocaleString("en")} more`) : null,
  );
}

function chip(id, isMine) {
  return make("li", { class: isMine ? "chip mine" : "chip" }, id, isMine ? unseen(" (yours)") : null);
}
