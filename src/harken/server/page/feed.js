// The server's live stream, read once for the whole page: rates every second and a sample of the events.

import { address, apiKey, ask, keys } from "./api.js";
import { read } from "./json.js";

const SECONDS_KEPT = 120;
const EVENTS_KEPT = 200;
const LONGEST_WAIT = 30_000;

/** Tells of "rates", "event" and "state"; what came lately stays in `rates` and `events`, the newest last. */
export const feed = Object.assign(new EventTarget(), { rates: [], events: [], state: "connecting" });

let source = null;
let isDenied = false;
let wait = 1_000;
let timer = 0;

/** Listen from now on, while somebody looks: a hidden tab gives its connection back. */
export function listen() {
  document.addEventListener("visibilitychange", () => (document.hidden ? stop("connecting") : start()));
  keys.addEventListener("changed", start);
  start();
}

async function start() {
  stop("connecting");
  isDenied = false;
  const mine = (source = {});
  try {
    const token = apiKey() ? await liveToken() : undefined;
    if (source === mine) open(token);
  } catch (error) {
    if (source === mine) fail(error);
  }
}

/** A token for the stream, because streams cannot send the key. A key may be denied one; the stream says the rest. */
async function liveToken() {
  try {
    return (await ask("POST", "token")).token;
  } catch (error) {
    isDenied = error.status === 403;
    if (isDenied) return undefined;
    throw error;
  }
}

function open(token) {
  const opened = (source = new EventSource(address("live", { token })));
  opened.addEventListener("open", () => {
    wait = 1_000;
    tell("open");
  });
  opened.addEventListener("rates", (message) => took("rates", read(message.data), SECONDS_KEPT + 1));
  opened.addEventListener("event", (message) => took("event", read(message.data), EVENTS_KEPT));
  opened.addEventListener("error", () => {
    tell("lost");
    if (opened.readyState === EventSource.CLOSED && opened === source) rejected();
  });
}

/** A stream does not say why it was rejected: another request does, and asks for the key if it is that. */
async function rejected() {
  if (isDenied) return tell("locked");
  try {
    await ask("GET", "stats");
    again();
  } catch (error) {
    fail(error);
  }
}

function fail(error) {
  if ([401, 403].includes(error.status)) tell("locked");
  else again();
}

function again() {
  tell("lost");
  clearTimeout(timer);
  timer = setTimeout(start, wait);
  wait = Math.min(2 * wait, LONGEST_WAIT);
}

function stop(state) {
  clearTimeout(timer);
  source?.close?.();
  source = null;
  tell(state);
}

function tell(state) {
  if (feed.state === state) return;
  feed.state = state;
  feed.dispatchEvent(new Event("state"));
}

function took(what, value, most) {
  const list = what === "rates" ? feed.rates : feed.events;
  list.push(value);
  if (list.length > most) list.splice(0, list.length - most);
  feed.dispatchEvent(new CustomEvent(what, { detail: value }));
}
