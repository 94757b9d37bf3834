// The page's start: its views by the hash of the address, and the API key.

import { apiKey, keys, useKey } from "./api.js";
import * as browse from "./browse.js";
import { at } from "./elements.js";
import * as explain from "./explain.js";
import { listen } from "./feed.js";
import * as live from "./live.js";
import * as plan from "./plan.js";
import * as publish from "./publish.js";
import * as watch from "./watch.js";
import * as write from "./write.js";

const VIEWS = {
  live: [live],
  write: [write],
  subscriptions: [browse, watch],
  explain: [explain],
  publish: [publish],
  plan: [plan],
};

const KEY_WANTED = "This server asks for an API key. It is kept until this tab is closed.";
const UNKNOWN_KEY = "The server does not know this API key.";

let current = null;

function route() {
  const asked = location.hash.slice(1);
  const name = asked in VIEWS ? asked : "live";
  if (name === current) return;
  const before = current;
  current = name;
  for (const each of Object.keys(VIEWS)) at(`view-${each}`).hidden = each !== name;
  for (const link of document.querySelectorAll("nav a")) {
    if (link.hash === `#${name}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `${at(`title-${name}`).textContent} · Harken`;
  VIEWS[before]?.forEach((each) => each.shown?.(false));
  VIEWS[name].forEach((each) => each.shown?.(true));
  if (before !== null) {
    scrollTo(0, 0);
    at(`title-${name}`).focus({ preventScroll: true });
  }
}

function openKeyForm(is) {
  at("key-form").hidden = !is;
  at("key-toggle").setAttribute("aria-expanded", String(is));
}

function prepareKeys() {
  at("key-toggle").addEventListener("click", () => {
    openKeyForm(at("key-form").hidden);
    if (!at("key-form").hidden) at("key").focus();
  });
  at("key-form").addEventListener("submit", (event) => {
    event.preventDefault();
    useKey(at("key").value.trim());
    at("key").value = "";
    openKeyForm(false);
  });
  at("key-forget").addEventListener("click", () => useKey(null));
  keys.addEventListener("wanted", () => {
    at("key-note").textContent = apiKey() ? UNKNOWN_KEY : KEY_WANTED;
    openKeyForm(true);
  });
  keys.addEventListener("changed", () => VIEWS[current].forEach((each) => each.shown?.(true)));
}

// The hash names the view, so the skip link cannot use it: it moves the focus itself.
at("skip").addEventListener("click", (event) => {
  event.preventDefault();
  at(`title-${current}`).focus();
});

[live, write, browse, explain, publish, plan].forEach((view) => view.prepare());
prepareKeys();
addEventListener("hashchange", route);
route();
listen();
