// The view of the index plan: what the engine holds, where, and what it expects an event to cost.

import { ask } from "./api.js";
import { at, make, paragraph, whileBusy } from "./elements.js";
import { pretty } from "./json.js";
import { showProblem } from "./problem.js";
import { bytes, counted, figure } from "./words.js";

const GROUPS = 50;

export function prepare() {
  at("plan-again").addEventListener("click", (event) => whileBusy(event.currentTarget, load));
}

export function shown(is) {
  if (is) load();
}

async function load() {
  try {
    const plan = await ask("GET", "plan");
    at("plan").replaceChildren(...[
      tiles(plan),
      ...(plan.matcher?.layers ?? []).map(layer),
      plan.programs ? programs(plan.programs) : null,
      plan.documents ? documents(plan.documents) : null,
      raw(plan),
    ].filter(Boolean));
  } catch (error) {
    showProblem(at("plan"), error);
  }
}

function tiles(plan) {
  const matcher = plan.matcher ?? {};
  const facts = [
    ["subscriptions", figure(plan.subscriptions)],
    ["algorithm", plan.algorithm],
    ["rows in the index", figure(matcher.rows)],
    ["memory", Number.isFinite(matcher.bytes) ? bytes(matcher.bytes) : "–"],
    ["expected for an event", nanoseconds(expected(matcher))],
    ["seen for an event", nanoseconds(matcher.seen_ns)],
    ["schema version", plan.schema_version ?? "none"],
  ];
  const tile = ([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, String(value ?? "–")));
  return make("dl", { class: "tiles" }, facts.map(tile));
}

function expected(matcher) {
  if (!matcher.layers) return null;
  const searching = matcher.layers.flatMap((each) => each.groups).reduce((sum, group) => sum + group.expected_ns, 0);
  return Object.values(matcher.besides ?? {}).reduce((sum, each) => sum + each.expected_ns, searching);
}

function nanoseconds(value) {
  if (value === null || value === undefined) return "–";
  return value >= 1000 ? `${figure(value / 1000)} µs` : `${figure(value)} ns`;
}

function layer(found, number, all) {
  const groups = [...found.groups].sort((a, b) => b.expected_ns - a.expected_ns);
  const title = all.length > 1 ? `Layer ${number + 1} of ${all.length}` : "Groups of rows";
  const rows = groups.slice(0, GROUPS).map((group) => [
    group.layout + (group.verified ? " (verified)" : ""),
    figure(group.rows),
    group.attributes.join(", "),
    foundBy(group),
    `${figure(group.expected_candidates)} / ${figure(group.seen_candidates)}`,
    nanoseconds(group.expected_ns),
  ]);
  const names = ["layout", "rows", "attributes", "found by", "candidates, expected / seen", "cost"];
  const left = groups.length - GROUPS;
  const more = left > 0 ? paragraph("soft", `and ${counted(left, "group")} more, which cost less`) : null;
  const note = `${counted(found.rows, "row")}, ${bytes(found.bytes)}; the most costly first.`;
  return card(title, note, table(names, rows, [1, 4, 5]), more);
}

/** What leads to the rows of a group. */
export function foundBy(group) {
  if (group.directory) return group.directory.length > 0 ? `directory of ${group.directory.join(", ")}` : "bitmaps";
  const parts = [];
  if (group.key) parts.push(`key ${group.key}`);
  if (group.filter?.length) parts.push(`filter of ${[group.key, ...group.filter].filter(Boolean).join(", ")}`);
  if (group.range) parts.push(`range of ${group.range}${group.steps ? ` in ${group.steps} steps` : ""}`);
  return parts.join(", ") || "all";
}

function programs(found) {
  const names = ["programs", "patterns", "always run", "run, expected / seen", "cost, expected / seen"];
  const rows = found.indexes.map((each) => [
    figure(each.programs),
    figure(each.patterns),
    figure(each.always),
    `${figure(each.expected_programs)} / ${figure(each.seen_programs)}`,
    `${nanoseconds(each.expected_ns)} / ${nanoseconds(each.seen_ns)}`,
  ]);
  const held = `${counted(found.subscriptions, "subscription")} with patterns or many alternatives`;
  return card("Programs", `${held}, ${bytes(found.memory?.bytes ?? 0)}.`, table(names, rows, [0, 1, 2, 3, 4]));
}

function documents(found) {
  const rows = [
    ["subscriptions", figure(found.subscriptions)],
    ["documents seen", figure(found.documents)],
    ["linear paths", figure(found.linear_paths)],
    ["tag paths", figure(found.tag_paths)],
    ["values", figure(found.values)],
  ];
  const note = `Subscriptions on XML documents, ${bytes(found.memory?.bytes ?? 0)}.`;
  return card("Documents", note, table(["what", "count"], rows, [1]));
}

function card(title, note, ...content) {
  return make("section", { class: "card" }, make("h2", {}, title), paragraph("soft", note), content);
}

function table(names, rows, numbers) {
  const side = (place) => (numbers.includes(place) ? { class: "number" } : {});
  const head = names.map((name, place) => make("th", { scope: "col", ...side(place) }, name));
  const body = rows.map((row) => make("tr", {}, row.map((cell, place) => make("td", side(place), cell))));
  const region = { class: names.length > 3 ? "wide many" : "wide", tabindex: 0, role: "region", "aria-label": "Table" };
  return make("div", region, make("table", {}, make("thead", {}, make("tr", {}, head)), make("tbody", {}, body)));
}

function raw(plan) {
  const text = make("pre", { tabindex: 0 }, pretty(plan));
  return make("details", { class: "card more" }, make("summary", {}, "All of it, as JSON"), text);
}
