/** Numbers with units, and times in the reader's zone. */

const COUNT = new Intl.NumberFormat();
const DAY_AND_TIME = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

/** A time of Llama Stack's API is a text, one of OpenAI's API is a number of seconds. */
export type Moment = string | number;

export function toDate(moment: Moment): Date {
  return new Date(typeof moment === "number" ? moment * 1000 : moment);
}

// Characters that turn the direction of what follows, or that are not seen.
const MISLEADING = /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/** Return a name with a mark in the place of each character that would make it look like another one. */
export function formatName(name: string): string {
  return name.replace(MISLEADING, "\ufffd");
}

export function formatTime(moment: Moment): string {
  const date = toDate(moment);
  return Number.isNaN(date.getTime()) ? String(moment) : DAY_AND_TIME.format(date);
}

export function formatUtc(moment: Moment): string {
  const date = toDate(moment);
  return Number.isNaN(date.getTime()) ? "" : date.toISOString().replace("T", " ").replace("Z", " UTC");
}

export function formatCount(count: number): string {
  return COUNT.format(count);
}

/** Return dollars with at least two significant digits: $12.30, $0.0042, $0.000024. */
export function formatDollars(dollars: number): string {
  if (dollars === 0) return "$0";
  const places = Math.abs(dollars) >= 0.1 ? 2 : Math.min(9, 1 - Math.floor(Math.log10(Math.abs(dollars))));
  return `$${dollars.toLocaleString(undefined, { minimumFractionDigits: 2, maximumFractionDigits: places })}`;
}

export function formatBytes(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`;
  const [size, unit] = bytes < 1e6 ? [bytes / 1e3, "KB"] : bytes < 1e9 ? [bytes / 1e6, "MB"] : [bytes / 1e9, "GB"];
  return `${size < 10 ? size.toFixed(1) : Math.round(size)} ${unit}`;
}

export function formatMilliseconds(milliseconds: number): string {
  if (milliseconds < 1000) return `${Math.round(milliseconds)} ms`;
  const seconds = milliseconds / 1000;
  if (seconds < 60) return `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`;
  return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
}

/** Return a time that is known in whole seconds. */
export function formatSeconds(seconds: number): string {
  if (seconds < 1) return "< 1 s";
  return seconds < 10 ? `${seconds} s` : formatMilliseconds(seconds * 1000);
}

/** Return the beginning of a text. */
export function cut(text: string, length: number): string {
  return text.length > length ? `${text.slice(0, length)} …` : text;
}
