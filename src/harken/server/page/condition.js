// A condition while it is typed: the server checks it, and what is wrong is shown at its place.

import { ask } from "./api.js";
import { make, paragraph } from "./elements.js";
import { problemElement } from "./problem.js";

const PAUSE = 250;

/** A text area with its check. `checked` is called with the condition when it is sound, and with null when not. */
export class Condition {
  constructor(textarea, language, box, checked = () => {}) {
    Object.assign(this, { textarea, language, box, checked });
    this.mirror = textarea.parentElement.querySelector(".mirror");
    this.timer = 0;
    this.pending = null;
    textarea.addEventListener("input", () => this.changed());
    textarea.addEventListener("scroll", () => (this.mirror.scrollTop = textarea.scrollTop));
    language.addEventListener("change", () => this.changed());
  }

  /** The text and its language, as requests name them. */
  get value() {
    return { where: this.textarea.value, language: this.language.value };
  }

  /** Put a text there, as if it had been typed. */
  set(where, language = "sql") {
    this.textarea.value = where;
    this.language.value = language;
    this.changed();
  }

  changed() {
    clearTimeout(this.timer);
    this.pending?.abort();
    this.mark(null);
    if (this.textarea.value.trim() === "") {
      this.say(null);
      this.checked(null);
      return;
    }
    this.timer = setTimeout(() => this.check(), PAUSE);
  }

  async check() {
    const asked = this.value;
    this.pending = new AbortController();
    try {
      const answer = await ask("POST", "check", { body: asked, signal: this.pending.signal });
      this.mark(null);
      this.say(...soundElements(answer.warnings ?? []));
      this.checked(asked);
    } catch (error) {
      if (error.name === "AbortError") return;
      this.show(error);
      this.checked(null);
    }
  }

  /** Show a problem of this text: in words below it, and as a mark inside it. */
  show(problem) {
    this.mark(problem.line ? problem : null);
    const go = () => this.goTo(problem);
    const there = problem.line ? make("button", { type: "button", class: "quiet", click: go }, "Go there") : null;
    this.say(make("div", { class: "line apart" }, problemElement(problem), there));
  }

  goTo(problem) {
    const [start, end] = span(this.textarea.value, problem);
    this.textarea.focus();
    this.textarea.setSelectionRange(start, Math.min(end, this.textarea.value.length));
  }

  say(...elements) {
    this.box.replaceChildren(...elements.filter((each) => each !== null));
  }

  /** The mirror lies behind the text area with the same text, and shows the mark that a text area cannot. */
  mark(problem) {
    this.textarea.toggleAttribute("aria-invalid", problem !== null);
    if (problem !== null) this.textarea.setAttribute("aria-invalid", "true");
    if (problem === null) {
      this.mirror.replaceChildren();
      return;
    }
    const text = this.textarea.value;
    const [start, end] = span(text, problem);
    const wrong = make("mark", {}, text.slice(start, end) || " ");
    this.mirror.replaceChildren(text.slice(0, start), wrong, `${text.slice(end)}\n`);
    this.mirror.scrollTop = this.textarea.scrollTop;
  }
}

/** Where a problem's word begins and ends in a text. Columns count characters, not the halves of wide ones. */
export function span(text, { line, column }) {
  const lines = text.split("\n");
  const before = lines.slice(0, line - 1).reduce((sum, each) => sum + each.length + 1, 0);
  const characters = Array.from(lines[line - 1] ?? "");
  const start = before + characters.slice(0, Math.max(0, (column ?? 1) - 1)).join("").length;
  const word = /^(\w+|[^\s\w]+)/u.exec(text.slice(start))?.[0] ?? "";
  return [Math.min(start, text.length), Math.min(start + word.length, text.length)];
}

/** A warning of the server's about a condition. */
export function warningElement(text) {
  return paragraph("warning", make("b", {}, "Warning: "), text);
}

function soundElements(warnings) {
  return [paragraph("sound", "Sound."), ...warnings.map(warningElement)];
}
