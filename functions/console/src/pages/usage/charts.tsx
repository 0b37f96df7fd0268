import type { ComponentType, JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import type { ChartProps } from "../../components/chart";
import { formatCount, formatDollars } from "../../format";
import { type Group, type Line, linesOf, type Report, tokensOf } from "./report";

interface ChartsProps {
  report: Report;
  group: Group;
  nameOf: (id: string) => string;
}

export function Charts({ report, group, nameOf }: ChartsProps): JSX.Element {
  const Chart = useChart();
  const times = useMemo(() => report.days.map((day) => Date.parse(day) / 1000), [report]);
  const tokens = useMemo(() => {
    if (group !== "total") return seriesOf(linesOf(report, group, tokensOf, nameOf), formatTokens);
    const input = linesOf(
      report,
      group,
      (row) => row.input,
      () => "Input",
    )[0];
    const output = linesOf(
      report,
      group,
      (row) => row.output,
      () => "Output",
    )[0];
    return seriesOf(
      [input, output].filter((line) => line !== undefined),
      formatTokens,
    );
  }, [report, group, nameOf]);
  const dollars = useMemo(
    () =>
      seriesOf(
        linesOf(report, group, (row) => row.dollars, nameOf),
        formatDollars,
      ),
    [report, group, nameOf],
  );
  if (report.sums.length === 0) return <></>;
  return (
    <div class="charts">
      <figure class="card">
        <figcaption>Tokens per day</figcaption>
        {Chart ? (
          <Chart label="Tokens per day. The table Days has the numbers." times={times} series={tokens} isUtc />
        ) : (
          <Place />
        )}
      </figure>
      <figure class="card">
        <figcaption>Dollars per day</figcaption>
        {Chart ? (
          <Chart label="Dollars per day. The table Days has the numbers." times={times} series={dollars} isUtc />
        ) : (
          <Place />
        )}
      </figure>
    </div>
  );
}

/** The space of a chart whose code is being loaded, so that nothing moves when it comes. */
function Place(): JSX.Element {
  return <div class="chart" aria-hidden="true" />;
}

function useChart(): ComponentType<ChartProps> | null {
  const [found, setFound] = useState<{ Chart: ComponentType<ChartProps> } | null>(null);
  useEffect(() => {
    // Without its code there are still the tables.
    import("../../components/chart").then(
      (module) => setFound({ Chart: module.default }),
      () => undefined,
    );
  }, []);
  return found?.Chart ?? null;
}

function seriesOf(lines: readonly Line[], format: (value: number) => string): ChartProps["series"] {
  return lines.map((line) => ({ ...line, format }));
}

/** Return a short count for an axis: 1.2M, 30K. */
function formatTokens(count: number): string {
  return count < 10_000
    ? formatCount(count)
    : count.toLocaleString(undefined, { notation: "compact", maximumFractionDigits: 1 });
}
