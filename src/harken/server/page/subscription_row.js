// One subscription of the list: a line that opens to what is known of it and what its ticket allows.

import { ask, subscriptionPath } from "./api.js";
import { button, copyButton, make, paragraph } from "./elements.js";
import { takeSubscription } from "./explain.js";
import { compact } from "./json.js";
import { problemElement, showProblem } from "./problem.js";
import { forget, keep, kept, ticketOf } from "./tickets.js";
import { isWatched, showNotifications, unwatch, watch, watching } from "./watch.js";
import { counted, distance, timeElement } from "./words.js";
import { takeCondition } from "./write.js";

const PERIODS = [["1 hour", 3_600], ["1 day", 86_400], ["1 week", 604_800], ["30 days", 2_592_000]];
const NOTIFICATIONS = 50;

/** How many fields for tickets were made: each has an id of its own. */
let fields = 0;

/** The row of a subscription, as the list or this browser knows it. */
export function subscriptionRow(known) {
  const row = { known: { ...kept().get(known.id), ...known }, cursor: null };
  const expiry = (row.expiry = make("span", { class: "soft" }));
  const mine = ticketOf(known.id) !== undefined;
  const details = (row.details = make("details", { class: "row" }, make("summary", {},
    make("b", { class: "id" }, known.id),
    row.known.where ? make("code", { class: "oneline" }, row.known.where) : null,
    make("span", { class: "ends" }, mine ? make("span", { class: "chip mine" }, "ticket kept") : null,
      make("span", { class: "chip" }, row.known.language ?? "sql"), expiry),
  )));
  showExpiry(row);
  details.addEventListener("toggle", () => {
    if (details.open && details.childElementCount === 1) details.append((row.box = make("div", { class: "opened" })));
    if (details.open) fill(row);
  });
  row.element = make("li", {}, details);
  return row.element;
}

function showExpiry(row) {
  const when = row.known.expires_at;
  const over = Date.parse(when) < Date.now();
  row.expiry.replaceChildren(when ? `${over ? "expired" : "expires"} ${distance(when)}` : "");
}

/** Reads the whole of it, and shows it with what can be done. A ticket is kept once it was seen to open it. */
async function fill(row, ticket = ticketOf(row.known.id)) {
  const id = row.known.id;
  if (!ticket && !row.known.where) return row.box.replaceChildren(ticketForm(row));
  try {
    row.known = await ask("GET", subscriptionPath(id), { ticket });
    const { where, language, expires_at } = row.known;
    if (ticket) keep(id, { ticket, where, language, expires_at });
    showExpiry(row);
    row.result = make("div", { role: "status" });
    row.box.replaceChildren(...whole(row.known), actions(row), row.result);
  } catch (error) {
    const rest = [401, 403].includes(error.status) ? ticketForm(row) : error.status === 404 ? gone(row) : "";
    row.box.replaceChildren(problemElement(error), rest);
  }
}

/** For a subscription that the server knows no more: its ticket is of no use. */
function gone(row) {
  return button("Take it off the list", () => { forget(row.known.id); row.element.remove(); });
}

function ticketForm(row) {
  const id = `ticket-${(fields += 1)}`;
  const field = make("input", { id, class: "code", autocomplete: "off", spellcheck: "false" });
  const form = make("form", { submit: (event) => {
    event.preventDefault();
    fill(row, field.value.trim());
  } },
  make("label", { for: id }, "Its ticket ", make("span", { class: "soft" }, "to see and manage it")),
  make("div", { class: "line tight" }, field, make("button", { type: "submit" }, "Use it")));
  return form;
}

function whole(known) {
  const hasDelivery = Object.keys(known.delivery ?? {}).length > 0;
  const facts = {
    Owner: known.owner,
    Labels: Object.entries(known.labels ?? {}).map(([name, value]) => `${name}: ${value}`).join(", "),
    Made: known.created_at && timeElement(known.created_at),
    Expires: known.expires_at && timeElement(known.expires_at),
    Delivery: hasDelivery && make("code", {}, compact(known.delivery)),
    Webhook: known.webhook && webhookState(known.webhook),
  };
  const told = Object.entries(facts).filter(([, value]) => value);
  const list = told.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]);
  return [make("pre", { tabindex: 0 }, known.where ?? ""), make("dl", { class: "facts" }, list)];
}

function webhookState(webhook) {
  const told = [webhook.state];
  if (webhook.failures) told.push(counted(webhook.failures, "failure"));
  if (webhook.dead) told.push(counted(webhook.dead, "dead letter"));
  if (webhook.last_error) told.push(webhook.last_error);
  return told.join(", ");
}

function actions(row) {
  const id = row.known.id;
  const watcher = button("", () => (isWatched(id) ? unwatch(id) : watch(id)), { class: "main", "data-watches": id });
  showWatched(watcher);
  const periods = PERIODS.map(([name, value]) => make("option", { value, selected: name === "1 day" }, name));
  const period = make("select", { "aria-label": `Renew ${id} for` }, periods);
  const renewer = button("Renew for", () => tried(row, () => renew(row, Number(period.value))));
  return make("div", { class: "line" },
    watcher,
    button("Earlier notifications", () => tried(row, () => earlier(row))),
    button("Explain", () => takeSubscription(id)),
    button("Write one like it", () => takeCondition(row.known.where, row.known.language)),
    make("span", { class: "line tight" }, renewer, period),
    copyTicket(id),
    remover(row),
  );
}

function showWatched(watcher) {
  watcher.textContent = isWatched(watcher.dataset.watches) ? "Stop watching" : "Watch";
}

watching.addEventListener("changed", () => document.querySelectorAll("[data-watches]").forEach(showWatched));

function copyTicket(id) {
  const ticket = ticketOf(id);
  if (!ticket) return null;
  return copyButton(ticket, `of ${id}`, "Copy its ticket");
}

async function tried(row, action) {
  row.result.replaceChildren();
  try {
    await action();
  } catch (error) {
    showProblem(row.result, error);
  }
}

async function renew(row, seconds) {
  const id = row.known.id;
  const body = { valid_for: seconds };
  const made = await ask("POST", subscriptionPath(id, "/renew"), { body, ticket: ticketOf(id) });
  row.known = { ...row.known, expires_at: made.expires_at };
  if (ticketOf(id)) keep(id, { expires_at: made.expires_at });
  showExpiry(row);
  const left = ` (${distance(made.expires_at)}).`;
  row.result.replaceChildren(paragraph("sound", "Renewed: it expires ", timeElement(made.expires_at), left));
}

/** Reads the next page of what was notified, the oldest first. */
async function earlier(row) {
  const id = row.known.id;
  const query = { subscription: id, after: row.cursor, limit: NOTIFICATIONS, format: "plain" };
  const found = await ask("GET", "notifications", { query, ticket: ticketOf(id) });
  row.cursor = found.next ?? row.cursor;
  showNotifications(found.notifications);
  const count = found.notifications.length;
  const told = count === 0 ? "There are no more." : `${counted(count, "notification")} read; see above the list.`;
  row.result.replaceChildren(paragraph("sound", told));
}

/** Deleting takes a second press: it cannot be undone. */
function remover(row) {
  const first = button("Delete", () => {
    first.replaceWith(choice);
    choice.firstElementChild.focus();
  }, { class: "bad" });
  const choice = make("span", { class: "line tight" },
    button("Delete for good", () => tried(row, () => remove(row)), { class: "bad main" }),
    button("Keep it", () => { choice.replaceWith(first); first.focus(); }));
  return first;
}

async function remove(row) {
  const id = row.known.id;
  await ask("DELETE", subscriptionPath(id), { ticket: ticketOf(id) });
  forget(id);
  await unwatch(id);
  row.details.replaceWith(make("p", { class: "sound", tabindex: "-1" }, "Deleted: ", make("code", {}, id)));
  row.element.firstElementChild.focus();
}
