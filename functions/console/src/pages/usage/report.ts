/** Sums of usage, by day and group, as series of charts and rows of tables. */
import { get, type Schemas } from "../../api";

export type Sum = Schemas["UsageSum"];
export type Group = "total" | "key" | "model" | "agent";

export const RANGES = [7, 30, 90] as const;
export type Range = (typeof RANGES)[number];

const DAY = 86_400_000;
/** The API sums at most this number of days in one request. */
const MOST_DAYS = 31;
/** Groups with a line of their own. The others are one more line. */
const MOST_LINES = 3;

export interface Report {
  /** UTC, ascending, such as 2026-11-28. */
  days: readonly string[];
  sums: readonly Sum[];
}

/** What a row of a table, or a line of a chart, has. */
export interface Row {
  id: string;
  runs: number;
  input: number;
  cached: number;
  output: number;
  /** null: hidden by the server. */
  dollars: number | null;
}

export async function readReport(range: Range, group: Group, signal: AbortSignal): Promise<Report> {
  const days = lastDays(range);
  const parts: string[][] = [];
  for (let start = 0; start < days.length; start += MOST_DAYS) parts.push(days.slice(start, start + MOST_DAYS));
  const groups: ("day" | Exclude<Group, "total">)[] = group === "total" ? ["day"] : ["day", group];
  const found = await Promise.all(
    parts.map((part) => get("/v1/usage", { query: { start: part[0]!, end: part.at(-1)!, group_by: groups }, signal })),
  );
  return { days, sums: found.flatMap(({ data }) => data ?? []) };
}

/** Return days in UTC, the last one today. */
function lastDays(count: number): string[] {
  const today = Date.now();
  return Array.from({ length: count }, (_, index) => toDay(today - (count - 1 - index) * DAY));
}

export function toDay(time: number): string {
  return new Date(time).toISOString().slice(0, 10);
}

export function idOf(sum: Sum, group: Group): string {
  if (group === "total") return "";
  const ids = { key: sum.key_id, model: sum.model_id, agent: sum.agent_id };
  return ids[group] ?? "";
}

/** Return the sums of each id, those that cost most first. */
export function rowsBy(sums: readonly Sum[], toId: (sum: Sum) => string): Row[] {
  const rows = new Map<string, Row>();
  for (const sum of sums) {
    const id = toId(sum);
    rows.set(id, add(rows.get(id) ?? { id, runs: 0, input: 0, cached: 0, output: 0, dollars: 0 }, sum));
  }
  return [...rows.values()].sort((a, b) => (b.dollars ?? 0) - (a.dollars ?? 0) || tokensOf(b) - tokensOf(a));
}

function add(row: Row, sum: Sum): Row {
  return {
    id: row.id,
    runs: row.runs + sum.runs,
    input: row.input + sum.input_tokens,
    cached: row.cached + sum.cached_tokens,
    output: row.output + sum.output_tokens,
    dollars: row.dollars === null || sum.dollars == null ? null : row.dollars + sum.dollars,
  };
}

export function tokensOf(row: Row): number {
  return row.input + row.output;
}

export interface Line {
  name: string;
  values: (number | null)[];
}

/** Return a line for each of the first groups, and one for the others. `nameOf` is for readers. */
export function linesOf(
  report: Report,
  group: Group,
  valueOf: (row: Row) => number | null,
  nameOf: (id: string) => string,
): Line[] {
  const ids = rowsBy(report.sums, (sum) => idOf(sum, group)).map(({ id }) => id);
  const own = ids.slice(0, ids.length > MOST_LINES + 1 ? MOST_LINES : MOST_LINES + 1);
  const lineOf = (sum: Sum) => {
    const index = own.indexOf(idOf(sum, group));
    return index < 0 ? own.length : index;
  };
  const names = own.length < ids.length ? [...own.map(nameOf), `${ids.length - own.length} others`] : own.map(nameOf);
  return names.map((name, index) => {
    const byDay = rowsBy(
      report.sums.filter((sum) => lineOf(sum) === index),
      (sum) => sum.day ?? "",
    );
    const values = new Map(byDay.map((row) => [row.id, valueOf(row)]));
    return { name, values: report.days.map((day) => (values.has(day) ? values.get(day)! : 0)) };
  });
}
