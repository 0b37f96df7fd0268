import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { Chart } from "../../components/chart";
import { formatCount, formatDollars } from "../../format";
import { type Group, type Line, linesOf, type Report, tokensOf } from "./report";

interface ChartsProps {
  report: Report;
  group: Group;
  nameOf: (id: string) => string;
}

const DAY = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", timeZone: "UTC" });

export function Charts({ report, group, nameOf }: ChartsProps): JSX.Element | null {
  const names = useMemo(() => report.days.map((day) => DAY.format(Date.parse(day))), [report]);
  const tokens = useMemo(() => tokenLines(report, group, nameOf), [report, group, nameOf]);
  const dollars = useMemo(() => linesOf(report, group, (row) => row.dollars, nameOf), [report, group, nameOf]);
  if (report.sums.length === 0) return null;
  return (
    <div class="charts">
      <figure class="card">
        <figcaption>Tokens per day</figcaption>
        <Chart label={`Tokens per day. ${NUMBERS}`} names={names} series={tokens} format={formatTokens} />
      </figure>
      <figure class="card">
        <figcaption>Dollars per day</figcaption>
        <Chart label={`Dollars per day. ${NUMBERS}`} names={names} series={dollars} format={formatDollars} />
      </figure>
    </div>
  );
}

const NUMBERS = "The table Days has the numbers.";

/** Return the lines of groups; in total, those of input and output. */
function tokenLines(report: Report, group: Group, nameOf: (id: string) => string): readonly Line[] {
  if (group !== "total") return linesOf(report, group, tokensOf, nameOf);
  return [
    ...linesOf(
      report,
      group,
      (row) => row.input,
      () => "Input",
    ),
    ...linesOf(
      report,
      group,
      (row) => row.output,
      () => "Output",
    ),
  ];
}

/** Return a short count for an axis: 1.2M, 30K. */
function formatTokens(count: number): string {
  if (count < 10_000) return formatCount(count);
  return count.toLocaleString(undefined, { notation: "compact", maximumFractionDigits: 1 });
}
