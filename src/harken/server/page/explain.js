// The view that explains why an event does or does not match a text or a subscription.

import { ask, Problem } from "./api.js";
import { Condition } from "./condition.js";
import { at, make, whileBusy } from "./elements.js";
import { lineOf, wholeEvent } from "./event_rows.js";
import { feed } from "./feed.js";
import { compact } from "./json.js";
import { showProblem } from "./problem.js";
import { kept, ticketOf, tickets } from "./tickets.js";
import { treeElement } from "./tree.js";

const RECENT = 20;

let condition = null;
let recent = [];

export function prepare() {
  condition = new Condition(at("explain-where"), at("explain-language"), at("explain-check"));
  const form = at("explain-form");
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    whileBusy(form.querySelector("button[type=submit]"), explain);
  });
  form.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
  });
  form.querySelectorAll("[name=explained]").forEach((each) => each.addEventListener("change", choose));
  at("explain-recent").addEventListener("focus", showRecent);
  at("explain-recent").addEventListener("change", takeRecent);
  tickets.addEventListener("changed", showIds);
  showIds();
}

export function shown(is) {
  if (is) showRecent();
}

/** Go to the view with this event in it. */
export function takeEvent(event) {
  at("explain-event").value = wholeEvent(event);
  location.hash = "#explain";
}

/** Go to the view with this subscription chosen. */
export function takeSubscription(id) {
  at("explain-form").querySelector("[value=subscription]").checked = true;
  at("explain-subscription").value = id;
  choose();
  location.hash = "#explain";
}

function bySubscription() {
  return at("explain-form").querySelector("[value=subscription]").checked;
}

function choose() {
  at("explain-by-where").hidden = bySubscription();
  at("explain-by-subscription").hidden = !bySubscription();
}

function showIds() {
  at("kept-ids").replaceChildren(...[...kept().keys()].map((id) => make("option", { value: id })));
}

function showRecent() {
  recent = feed.events.slice(-RECENT).reverse();
  const options = recent.map((each, place) => make("option", { value: place }, lineOf(each.event).slice(0, 80)));
  const first = make("option", { value: "" }, recent.length > 0 ? "choose" : "none yet");
  at("explain-recent").replaceChildren(first, ...options);
}

function takeRecent() {
  const chosen = recent[Number(at("explain-recent").value || -1)];
  if (chosen) at("explain-event").value = wholeEvent(chosen.event);
}

async function explain() {
  const box = at("explanation");
  try {
    const id = at("explain-subscription").value.trim();
    const what = bySubscription() ? { subscription: id } : condition.value;
    const ticket = bySubscription() ? (ticketOf(id) ?? "") : undefined;
    const found = await ask("POST", "explain", { text: request(what, at("explain-event").value), ticket });
    const verdict = found.matched ? "It matches" : "It does not match";
    const title = make("h2", { id: "verdict", class: found.matched ? "verdict yes" : "verdict no" }, verdict);
    const card = { class: "card", "aria-labelledby": "verdict" };
    box.replaceChildren(make("section", card, title, treeElement(found.tree)));
    at("verdict-said").textContent = verdict;
  } catch (error) {
    at("verdict-said").textContent = error.message;
    showProblem(box, error);
    if (error.line && !bySubscription()) condition.show(error);
  }
}

/** The request as text: the event goes into it as it was written, so that no number is rounded on the way. */
function request(what, event) {
  const trimmed = event.trim();
  if (trimmed === "") {
    throw new Problem(0, { detail: "there is no event", hint: "paste one, or choose one from the live list" });
  }
  return `${compact(what).slice(0, -1)},"event":${trimmed.startsWith("<") ? compact(event) : checked(trimmed)}}`;
}

function checked(text) {
  try {
    JSON.parse(text);
  } catch (error) {
    throw new Problem(0, { detail: `the event is not JSON: ${error.message}`, hint: "XML begins with <" });
  }
  return text;
}
