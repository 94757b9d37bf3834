// Numbers, times and durations as people read them.

const WHOLE = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const SHORT = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });
const CLOCK = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const DATE = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "short" });
const UNITS = [["day", 86_400], ["hour", 3_600], ["minute", 60], ["second", 1]];

/** A number: whole from 100 on, with one decimal below. */
export function figure(value) {
  if (typeof value !== "number" || !Number.isFinite(value)) return "–";
  return (Math.abs(value) >= 100 ? WHOLE : SHORT).format(value);
}

/** "1 event", "2 events". */
export function counted(count, noun) {
  return `${WHOLE.format(count)} ${plural(count, noun)}`;
}

/** The noun alone, as the count asks. */
export function plural(count, noun) {
  if (count === 1) return noun;
  return /(s|x|ch|sh)$/.test(noun) ? `${noun}es` : `${noun}s`;
}

/** Bytes in the largest unit that leaves a number above 1. */
export function bytes(count) {
  const units = ["bytes", "kB", "MB", "GB", "TB"];
  const step = count < 1000 ? 0 : Math.min(units.length - 1, Math.floor(Math.log10(count) / 3));
  return `${SHORT.format(count / 1000 ** step)} ${units[step]}`;
}

/** A time of the server's: the clock time of today, else the date; the whole text is in `datetime`. */
export function timeElement(text) {
  const element = document.createElement("time");
  const time = new Date(text);
  if (Number.isNaN(time.getTime())) {
    element.textContent = String(text ?? "–");
    return element;
  }
  element.dateTime = text;
  element.title = text;
  const today = new Date().toDateString() === time.toDateString();
  element.textContent = (today ? CLOCK : DATE).format(time);
  return element;
}

/** How far off a time is: "in 23 hours", "5 minutes ago". */
export function distance(text) {
  const seconds = (new Date(text).getTime() - Date.now()) / 1000;
  if (Number.isNaN(seconds)) return "";
  const [unit, size] = UNITS.find(([, each]) => Math.abs(seconds) >= each) ?? ["second", 1];
  const told = counted(Math.round(Math.abs(seconds) / size), unit);
  return seconds < 0 ? `${told} ago` : `in ${told}`;
}
