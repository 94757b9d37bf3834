// The live view: rates as figures and lines, and the sampled events.

import { RateChart } from "./chart.js";
import { at, button, make } from "./elements.js";
import { eventRow, matchCount, matchedIds } from "./event_rows.js";
import { takeEvent as explainEvent } from "./explain.js";
import { feed } from "./feed.js";
import { takeEvent as publishEvent } from "./publish.js";
import { figure, plural } from "./words.js";

const ROWS = 40;
const STATES = {
  open: "live",
  connecting: "connecting",
  lost: "no connection, trying again",
  locked: "an API key with the scope admin is needed",
};

const charts = { events: null, matches: null };
let paused = false;
let waiting = [];
let isShown = false;

export function prepare() {
  charts.events = new RateChart(at("chart-events"), "--one");
  charts.matches = new RateChart(at("chart-matches"), "--two");
  at("pause").addEventListener("click", () => pause(!paused));
  feed.addEventListener("rates", () => isShown && !document.hidden && showRates());
  feed.addEventListener("event", (told) => take(told.detail));
  feed.addEventListener("state", showState);
  // Rows come once a second, however many events: a list that moves all the time cannot be read.
  setInterval(showWaiting, 1000);
  showState();
}

export function shown(is) {
  isShown = is;
  if (!is) return;
  showRates();
  showWaiting();
  Object.values(charts).forEach((chart) => chart.fit());
}

function pause(is) {
  paused = is;
  at("pause").setAttribute("aria-pressed", String(is));
  at("pause").textContent = is ? "Go on" : "Pause";
  if (!is) {
    showWaiting();
    showRates();
  }
  note();
}

function showState() {
  at("state").textContent = STATES[feed.state];
  at("state").dataset.state = feed.state;
}

function showRates() {
  const latest = feed.rates.at(-1);
  if (!latest || paused) return;
  at("events-rate").textContent = figure(latest.events_per_second);
  at("matches-rate").textContent = figure(latest.matches_per_second);
  for (const [name, noun] of [["subscriptions", "subscription"], ["streams", "open stream"]]) {
    at(`count-${name}`).textContent = (latest[name] ?? 0).toLocaleString("en");
    at(`word-${name}`).textContent = plural(latest[name], noun);
  }
  const now = Date.parse(latest.time);
  for (const [name, chart] of Object.entries(charts)) chart.show(points(now, `${name}_per_second`));
}

function points(now, name) {
  const found = feed.rates.map((each) => ({ ago: (Date.parse(each.time) - now) / 1000, value: each[name] }));
  return found.filter((point) => point.ago >= -120 && point.ago <= 0);
}

function take(told) {
  waiting.push(told);
  if (!paused && waiting.length > ROWS) waiting = waiting.slice(-ROWS);
  if (paused) note();
}

function note() {
  const more = waiting.length === 0 ? "" : `, ${waiting.length.toLocaleString("en")} more since`;
  at("events-note").textContent = paused ? `paused${more}` : "";
}

function showWaiting() {
  if (paused || !isShown || waiting.length === 0) return;
  const rows = waiting.slice(-ROWS).map(row).reverse();
  waiting = [];
  const list = at("events");
  // Who has the focus in the list keeps it: the row that holds it may leave the list only when the focus has.
  const focused = list.contains(document.activeElement);
  list.prepend(...rows);
  while (list.childElementCount > ROWS && !(focused && list.lastElementChild.contains(document.activeElement))) {
    list.lastElementChild.remove();
  }
  at("events-empty").hidden = true;
}

function row(told) {
  const actions = make("div", { class: "line" },
    button("Explain it", () => explainEvent(told.event)),
    button("Publish it again", () => publishEvent(told.event)),
  );
  return eventRow({
    time: told.time,
    event: told.event,
    aside: matchCount(told.matched),
    below: [matchedIds(told.matches, told.matched), actions],
    opened: () => pause(true),
  });
}
