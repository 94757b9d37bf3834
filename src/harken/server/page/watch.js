// Notifications as they happen: one stream for all subscriptions that are watched.

import { address, ask, subscriptionPath } from "./api.js";
import { at, button, make } from "./elements.js";
import { eventRow } from "./event_rows.js";
import { read } from "./json.js";
import { problemElement } from "./problem.js";
import { ticketOf } from "./tickets.js";
import { counted } from "./words.js";

const ROWS = 100;
const LONGEST_WAIT = 30_000;

/** Tells of "changed": other subscriptions are watched. */
export const watching = new EventTarget();

const watched = new Set();
let source = null;
let cursor = null;
let total = 0;
let unread = 0;
let saying = 0;
let wait = 1_000;
let timer = 0;

export function isWatched(id) {
  return watched.has(id);
}

/** Watch a subscription too. */
export function watch(id) {
  watched.add(id);
  at("watching-left").replaceChildren();
  return changed();
}

export function unwatch(id) {
  if (!watched.delete(id)) return undefined;
  return changed();
}

/** The view with the notifications was opened or left: what is seen is no news. */
export function shown(is) {
  if (is) count(0);
}

/** Show notifications that were read rather than streamed, above the others. */
export function showNotifications(notifications) {
  at("watching").hidden = false;
  const list = at("notifications");
  list.prepend(...notifications.map(row).reverse());
  while (list.childElementCount > ROWS) list.lastElementChild.remove();
  at("notifications-empty").hidden = list.childElementCount > 0;
}

function changed() {
  at("watching").hidden = false;
  at("watched").replaceChildren(...[...watched].map((id) => make("li", { class: "chip mine" }, id,
    button("✕", () => stopHere(id), { class: "quiet", "aria-label": `Stop watching ${id}` }))));
  watching.dispatchEvent(new Event("changed"));
  return open();
}

/** The button that was pressed goes: the focus moves to the title above it. */
function stopHere(id) {
  at("watching-title").focus();
  return unwatch(id);
}

async function open() {
  clearTimeout(timer);
  source?.close?.();
  const mine = (source = {});
  if (watched.size === 0) return say("");
  say("connecting");
  const ids = [...watched];
  const given = await Promise.allSettled(ids.map(tokenOf));
  if (source !== mine) return;
  const failed = given.findIndex((each) => each.status === "rejected");
  if (failed < 0) {
    // From here on none is missed, also while the stream is opened again to watch one more.
    cursor ??= given[0].value.cursor;
    stream(ids, given.map((each) => each.value.token));
  }
  if (failed >= 0) leave(ids[failed], given[failed].reason);
}

function tokenOf(id) {
  return ask("POST", subscriptionPath(id, "/token"), { ticket: ticketOf(id) });
}

function stream(ids, tokens) {
  const query = { subscription: ids, token: tokens, after: cursor, format: "plain" };
  const opened = (source = new EventSource(address("stream", query)));
  opened.addEventListener("open", () => {
    wait = 1_000;
    tellCount();
  });
  opened.addEventListener("notification", (message) => took([read(message.data)], message.lastEventId));
  opened.addEventListener("digest", (message) => took(read(message.data).notifications, message.lastEventId));
  opened.addEventListener("error", () => {
    if (opened !== source) return;
    say("no connection, trying again");
    // Tokens do not live long: a stream that was rejected is opened again with new ones, from where it was.
    if (opened.readyState === EventSource.CLOSED) again();
  });
}

/** Without a token for one subscription the others are watched on, unless the server only has no time. */
function leave(id, error) {
  if (error.status === 0 || error.status >= 429) return again();
  unwatch(id);
  const told = make("p", {}, "No longer watched: ", make("code", {}, id));
  at("watching-left").replaceChildren(told, problemElement(error));
}

function again() {
  clearTimeout(timer);
  timer = setTimeout(open, wait);
  wait = Math.min(2 * wait, LONGEST_WAIT);
}

function say(text) {
  at("watching-state").textContent = text;
}

/** How many came, said at most every few seconds: it is read aloud. */
function tellCount() {
  say(total === 0 ? "watching" : `watching, ${counted(total, "notification")} so far`);
  saying = 0;
}

function took(notifications, last) {
  if (last) cursor = last;
  total += notifications.length;
  saying ||= setTimeout(tellCount, 2_000);
  showNotifications(notifications);
  if (at("view-subscriptions").hidden) count(unread + notifications.length);
}

function count(value) {
  unread = value;
  at("unread").hidden = value === 0;
  at("unread").textContent = `${value.toLocaleString("en")} new`;
}

function row(notification) {
  const { subscription, suppressed } = notification;
  const left = suppressed ? make("span", { class: "count" }, `${suppressed} left out before`) : null;
  const aside = make("span", { class: "ends" }, make("span", { class: "chip mine" }, subscription), left);
  return eventRow({ time: notification.time, event: notification.event, aside });
}
