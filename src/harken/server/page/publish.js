// The view that publishes a test event, or tries what it would match.

import { ask } from "./api.js";
import { at, make, paragraph, whileBusy } from "./elements.js";
import { matchCount, matchedIds, wholeEvent } from "./event_rows.js";
import { feed } from "./feed.js";
import { rejectedList, showProblem } from "./problem.js";
import { counted } from "./words.js";

const SHOWN = 20;
const EXAMPLE = '{"category": "Toy", "price": 3.5}';

export function prepare() {
  const form = at("publish-form");
  at("publish-event").value = EXAMPLE;
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    whileBusy(form.querySelector("button[type=submit]"), () => send(false));
  });
  form.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
  });
  at("publish-try").addEventListener("click", (event) => whileBusy(event.currentTarget, () => send(true)));
  at("publish-last").addEventListener("click", () => {
    const last = feed.events.at(-1);
    if (last) at("publish-event").value = wholeEvent(last.event);
    at("publish-event").focus();
  });
}

/** Go to the view with this event in it. */
export function takeEvent(event) {
  at("publish-event").value = wholeEvent(event);
  location.hash = "#publish";
}

async function send(dry) {
  const box = at("publish-result");
  const text = at("publish-event").value;
  try {
    const query = dry ? { dry_run: "true" } : {};
    const answer = await ask("POST", "events", { text, type: contentType(text), query });
    box.replaceChildren(...(dry ? tried(answer) : published(answer)));
  } catch (error) {
    showProblem(box, error);
  }
}

/** XML begins with <; JSON is one value; several lines of JSON are told by the first of them. */
function contentType(text) {
  if (text.trim().startsWith("<")) return "application/xml";
  const lines = text.trim().split("\n");
  return lines.length > 1 && isJson(lines[0]) ? "application/x-ndjson" : "application/json";
}

function isJson(text) {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function published(answer) {
  const duplicates = answer.duplicates ? `, ${counted(answer.duplicates, "duplicate")} left out` : "";
  return [paragraph("sound", `${counted(answer.accepted, "event")} published${duplicates}.`), ...rejected(answer)];
}

function tried(answer) {
  const rows = answer.matches.slice(0, SHOWN).map((ids, position) => make("li", {},
    make("div", { class: "line" }, make("b", {}, `Event ${position + 1}`), matchCount(ids.length)),
    matchedIds(ids, ids.length),
  ));
  const told = paragraph("soft", "Tried only: nobody was notified.");
  return [told, make("ol", { class: "plain" }, rows), ...rejected(answer)];
}

function rejected(answer) {
  return answer.rejected?.length ? [rejectedList(answer.rejected)] : [];
}
