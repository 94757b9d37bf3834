// The view to write a subscription: checked while typing, tried on recent events, and subscribed with a ticket.

import { ask } from "./api.js";
import { BackTest } from "./backtest.js";
import { Condition, warningElement } from "./condition.js";
import { at, button, copyButton, make, paragraph, whileBusy } from "./elements.js";
import { showProblem } from "./problem.js";
import { keep } from "./tickets.js";
import { watch } from "./watch.js";
import { distance, timeElement } from "./words.js";

const ONCE =
  "This is the only time that it is shown. Whoever has the ticket can renew and delete the subscription and read its " +
  "notifications. This browser keeps it, so that this page can.";

let condition = null;

export function prepare() {
  const backtest = new BackTest(at("backtest"));
  condition = new Condition(at("where"), at("language"), at("where-check"), (sound) => backtest.take(sound));
  at("write-form").addEventListener("submit", (event) => {
    event.preventDefault();
    whileBusy(at("subscribe"), subscribe);
  });
  at("where").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) at("write-form").requestSubmit();
  });
}

/** Go to the view with this condition in it. */
export function takeCondition(where, language) {
  location.hash = "#write";
  condition.set(where, language);
}

async function subscribe() {
  const box = at("write-result");
  box.replaceChildren();
  if (at("where").value.trim() === "") {
    box.replaceChildren(paragraph("problem", "Write a condition first, as in: category = 'Toy' AND price < 5"));
    at("where").focus();
    return;
  }
  try {
    const body = wanted();
    const made = await ask("POST", "subscriptions", { body });
    keep(made.id, { ticket: made.ticket, expires_at: made.expires_at, where: body.where, language: body.language });
    at("new-id").value = "";
    showTicket(made);
  } catch (error) {
    if (!error.line) return showProblem(box, error);
    condition.show(error);
    box.replaceChildren(paragraph("problem", "Not subscribed: the condition is wrong, as is said below it."));
  }
}

/** The body of the request: what was left empty is left out. */
function wanted() {
  const body = { ...condition.value };
  for (const name of ["id", "owner"]) {
    const given = at(`new-${name}`).value.trim();
    if (given !== "") body[name] = given;
  }
  const seconds = Number(at("valid-count").value) * Number(at("valid-unit").value);
  if (seconds > 0) body.valid_for = seconds;
  const labels = labelsOf(at("labels").value);
  if (labels) body.labels = labels;
  const delivery = {};
  if (at("webhook").value.trim() !== "") delivery.webhook = { url: at("webhook").value.trim() };
  if (at("max-delay").value !== "") delivery.max_delay = Number(at("max-delay").value);
  if (Object.keys(delivery).length > 0) body.delivery = delivery;
  return body;
}

function labelsOf(text) {
  const split = text.split(",").map((each) => each.split(":").map((part) => part.trim()));
  const pairs = split.filter(([name]) => name !== "");
  return pairs.length === 0 ? null : Object.fromEntries(pairs.map(([name, ...value]) => [name, value.join(":")]));
}

function showTicket(made) {
  const box = at("ticket");
  const watchIt = () => {
    location.hash = "#subscriptions";
    return watch(made.id);
  };
  box.replaceChildren(make("section", { class: "card good", "aria-labelledby": "ticket-title" },
    make("h2", { id: "ticket-title" }, "Subscribed as ", make("code", {}, made.id)),
    make("p", {}, "Valid until ", timeElement(made.expires_at), ` (${distance(made.expires_at)}).`),
    (made.warnings ?? []).map(warningElement),
    secret("Ticket", made.ticket),
    made.webhook_secret ? secret("Webhook secret", made.webhook_secret) : null,
    paragraph("soft", ONCE),
    make("div", { class: "line" },
      button("Watch its notifications", watchIt, { class: "main" }),
      make("a", { class: "button", href: "#publish" }, "Publish a test event"),
      button("Done", () => { box.replaceChildren(); at("where").focus(); }),
    ),
  ));
  box.focus();
}

function secret(name, value) {
  const id = `secret-${name.toLowerCase().replace(" ", "-")}`;
  return make("div", { class: "field" }, make("label", { for: id }, name),
    make("div", { class: "line tight" },
      make("input", { id, class: "code", readonly: true, value, focus: (event) => event.target.select() }),
      copyButton(value, `the ${name.toLowerCase()}`)));
}
