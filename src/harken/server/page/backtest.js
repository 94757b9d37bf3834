// What a condition would have matched lately, told as soon as it is sound.

import { ask } from "./api.js";
import { make, paragraph } from "./elements.js";
import { eventRow } from "./event_rows.js";
import { showProblem } from "./problem.js";
import { counted, timeElement } from "./words.js";

const PAUSE = 350;
const EXAMPLES = 5;
/** How long to wait, at least, while the server has other back-tests under way, in ms. */
const BUSY_PAUSE = 1000;

/** Tells in a box what sound conditions would have matched. A newer condition overtakes an older one. */
export class BackTest {
  constructor(box) {
    this.box = box;
    this.timer = 0;
    this.pending = null;
  }

  /** Try this condition, or none. */
  take(condition) {
    clearTimeout(this.timer);
    this.pending?.abort();
    this.pending = null;
    if (condition === null) this.box.replaceChildren();
    else this.timer = setTimeout(() => this.run(condition), PAUSE);
  }

  async run(condition) {
    const mine = (this.pending = new AbortController());
    this.box.setAttribute("aria-busy", "true");
    try {
      const found = await ask("POST", "backtest", { body: { ...condition, limit: EXAMPLES }, signal: mine.signal });
      this.box.replaceChildren(...elements(found));
    } catch (error) {
      if (error.status === 429 && this.pending === mine) {
        this.timer = setTimeout(() => this.run(condition), Math.max(BUSY_PAUSE, 1000 * Number(error.retryAfter)));
      } else showProblem(this.box, error);
    } finally {
      if (this.pending === mine) this.box.removeAttribute("aria-busy");
    }
  }
}

function elements(found) {
  if (found.looked_at === 0) {
    const link = make("a", { href: "#publish" }, "Publish one");
    return [paragraph("soft", "No events were published yet, so there is nothing to try it on. ", link, ".")];
  }
  const share = `Matched ${found.matched.toLocaleString("en")} of the last ${counted(found.looked_at, "event")}`;
  const period = make("span", { class: "soft" }, " from ", timeElement(found.from), " to ", timeElement(found.to));
  const label = "Share of events that match";
  const meter = make("meter", { min: 0, max: found.looked_at, value: found.matched, "aria-label": label });
  const examples = found.examples.map((each) => eventRow({ time: each.time, event: each.event }));
  const list = make("ol", { class: "rows", "aria-label": "Examples" }, examples);
  return [make("p", {}, make("b", { class: "big" }, share), period), meter, ...(examples.length > 0 ? [list] : [])];
}
