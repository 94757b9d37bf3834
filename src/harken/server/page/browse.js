// The view of all subscriptions: filtered, a page at a time.

import { ask } from "./api.js";
import { at, make, paragraph, whileBusy } from "./elements.js";
import { showProblem } from "./problem.js";
import { subscriptionRow } from "./subscription_row.js";
import { kept } from "./tickets.js";

const PAGE = 25;
/** As many as fit into a header of a request. */
const TICKETS = 100;

/** The cursors of the pages before this one, the first page's being null. */
let pages = [null];
let next = null;

export function prepare() {
  at("filter").addEventListener("submit", (event) => {
    event.preventDefault();
    first();
  });
  at("filter").addEventListener("change", first);
  at("list-next").addEventListener("click", () => whileBusy(at("list-next"), () => turn(() => pages.push(next))));
  at("list-back").addEventListener("click", () => whileBusy(at("list-back"), () => turn(() => pages.pop())));
}

export function shown(is) {
  if (is) first();
}

function first() {
  return turn(() => (pages = [null]));
}

async function turn(change) {
  change();
  try {
    const found = await (at("filter-mine").checked ? mine() : page());
    next = found.next;
    show(found.subscriptions);
  } catch (error) {
    at("list").replaceChildren();
    showProblem(at("list-note"), error);
  }
  // After the buttons' own work is done: it enables them.
  setTimeout(() => {
    at("list-back").disabled = pages.length === 1;
    at("list-next").disabled = next === null;
    at("list-pages").hidden = pages.length === 1 && next === null;
  });
}

function page() {
  const query = {
    owner: at("filter-owner").value.trim(),
    label: at("filter-label").value.trim(),
    language: at("filter-language").value,
    after: pages.at(-1),
    limit: PAGE,
  };
  const tickets = [...kept().values()].map((known) => known.ticket).slice(-TICKETS);
  return ask("GET", "subscriptions", { query, tickets });
}

/** Those whose tickets are kept here need no request: what is shown of them when they are opened does. */
function mine() {
  const all = [...kept()].map(([id, known]) => ({ id, ...known }));
  const start = Number(pages.at(-1) ?? 0);
  const end = start + PAGE;
  return { subscriptions: all.slice(start, end), next: end < all.length ? end : null };
}

function show(subscriptions) {
  at("list").replaceChildren(...subscriptions.map(subscriptionRow));
  at("list-page").textContent = pages.length > 1 || next !== null ? `Page ${pages.length}` : "";
  const nothing = paragraph("empty", "No subscriptions here. ", make("a", { href: "#write" }, "Write one"), ".");
  at("list-note").replaceChildren(...(subscriptions.length === 0 ? [nothing] : []));
}
