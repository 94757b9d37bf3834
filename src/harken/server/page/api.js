// Requests to the server that the page came from, with the API key if there is one. What goes wrong is a Problem.

import { read } from "./json.js";

const BASE = new URL("..", import.meta.url);
const KEY = `harken.key ${BASE.pathname}`;
const JSON_TYPE = "application/json";

/** Tells of "wanted": the server asks for an API key; and of "changed": another key is in use, or none. */
export const keys = new EventTarget();

/** What the server said against a request, or that it did not answer. */
export class Problem extends Error {
  constructor(status, told) {
    super(told.detail || told.title || `the server answered ${status}`);
    this.status = status;
    this.type = told.type ?? "";
    this.title = told.title ?? "";
    this.line = told.line;
    this.column = told.column;
    this.excerpt = told.excerpt;
    this.hint = told.hint;
    this.rejected = told.rejected ?? [];
    this.requestId = told.request_id;
    this.retryAfter = told.retry_after;
  }
}

export function apiKey() {
  return sessionStorage.getItem(KEY);
}

/** Use another API key, or none. */
export function useKey(key) {
  if (key) sessionStorage.setItem(KEY, key);
  else sessionStorage.removeItem(KEY);
  keys.dispatchEvent(new Event("changed"));
}

/** The address of a path of the server's; a list in the query repeats its name. */
export function address(path, query = {}) {
  const url = new URL(path, BASE);
  for (const [name, value] of Object.entries(query)) {
    for (const each of Array.isArray(value) ? value : [value]) {
      if (each !== "" && each !== null && each !== undefined) url.searchParams.append(name, each);
    }
  }
  return url;
}

/**
 * What the server answers, as a value; null where the answer is empty. `body` is sent as JSON, `text` as it is with
 * its content type. `ticket` is what the request needs, "" where there is none; `tickets` open more of the answer.
 * Throws Problem; throws AbortError if the signal says so.
 */
export async function ask(method, path, { query, body, text, type = JSON_TYPE, ticket, tickets = [], signal } = {}) {
  const headers = { Accept: JSON_TYPE };
  if (apiKey()) headers.Authorization = `Bearer ${apiKey()}`;
  if (ticket || tickets.length > 0) headers["Harken-Ticket"] = ticket || tickets.join(",");
  const content = text ?? (body === undefined ? undefined : JSON.stringify(body));
  if (content !== undefined) headers["Content-Type"] = type;
  const options = { method, headers, body: content, signal, cache: "no-store", credentials: "omit" };
  const answer = await sent(address(path, query), options);
  const found = await answer.text();
  if (answer.ok) return found === "" ? null : read(found);
  throw rejected(answer, found, ticket);
}

async function sent(url, options) {
  try {
    return await fetch(url, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, { detail: "the server cannot be reached", hint: "is it running?" });
  }
}

function rejected(answer, text, ticket) {
  let told = {};
  try {
    told = read(text);
  } catch {
    told = { detail: text.slice(0, 500) };
  }
  const problem = new Problem(answer.status, { ...told, retry_after: answer.headers.get("Retry-After") });
  if (answer.status === 401 && ticket === undefined) keys.dispatchEvent(new Event("wanted"));
  return problem;
}

/** The path of one subscription, and of what is below it. */
export function subscriptionPath(id, below = "") {
  return `subscriptions/${encodeURIComponent(id)}${below}`;
}
