// The tickets that this browser keeps: each lets the page renew, delete and listen to one subscription.

const NAME = `harken.tickets ${new URL("..", import.meta.url).pathname}`;

/** Tells of "changed", here and in other tabs. */
export const tickets = new EventTarget();

addEventListener("storage", (event) => {
  if (event.key === NAME) tickets.dispatchEvent(new Event("changed"));
});

/** What is kept, by id: {ticket, expires_at, where, language}. */
export function kept() {
  try {
    return new Map(Object.entries(JSON.parse(localStorage.getItem(NAME) ?? "{}")));
  } catch {
    return new Map();
  }
}

/** The ticket of a subscription, or undefined. */
export function ticketOf(id) {
  return kept().get(id)?.ticket;
}

/** Keep a ticket, or what else is known of its subscription. */
export function keep(id, known) {
  const all = kept();
  all.set(id, { ...all.get(id), ...known });
  write(all);
}

export function forget(id) {
  const all = kept();
  if (all.delete(id)) write(all);
}

function write(all) {
  localStorage.setItem(NAME, JSON.stringify(Object.fromEntries(all)));
  tickets.dispatchEvent(new Event("changed"));
}
