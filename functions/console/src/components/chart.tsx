/** Charts over time. A page that needs them loads this file, with its library. */
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";

export interface ChartProps {
  /** What the chart shows, for those who cannot see it. */
  label: string;
  /** Seconds since 1970, ascending. */
  times: readonly number[];
  /** At most four, because there are four colours. */
  series: readonly { name: string; values: readonly (number | null)[]; format: (value: number) => string }[];
  height?: number;
  /** The times are those of days in UTC. Else the axis has the reader's zone. */
  isUtc?: boolean;
}

export default function Chart({ label, times, series, height = 240, isUtc = false }: ChartProps): JSX.Element {
  const place = useRef<HTMLDivElement>(null);
  const [hovered, setHovered] = useState<number | null>(null);
  const scheme = useScheme();
  useEffect(() => {
    const element = place.current!;
    const style = getComputedStyle(element);
    const colour = (name: string) => style.getPropertyValue(name);
    const font = `12px ${colour("--font")}`;
    const axis = {
      stroke: colour("--text-2"),
      font,
      grid: { stroke: colour("--line"), width: 1 },
      ticks: { show: false },
    };
    const drawn = series.map((_, index) => ({
      stroke: colour(`--series-${(index % 4) + 1}`),
      width: 2,
      points: { show: times.length < 15 },
    }));
    const first = series[0]?.format ?? String;
    const values = (_: uPlot, found: number[]) => found.map(first);
    const options: uPlot.Options = {
      width: element.clientWidth,
      height,
      series: [{}, ...drawn],
      axes: [
        isUtc ? { ...axis, values: (_, found) => found.map(formatDay), incrs: DAYS, size: 32 } : axis,
        { ...axis, size: 64, values },
      ],
      scales: { y: { range: (_, __, most) => [0, most > 0 ? most * 1.1 : 1] } },
      // The legend of the library is HTML, and names of series are texts of others.
      legend: { show: false },
      cursor: { drag: { x: false, y: false } },
      hooks: { setCursor: [(chart) => setHovered(chart.cursor.idx ?? null)] },
      ...(isUtc && { tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC") }),
    };
    const data = [[...times], ...series.map(({ values: own }) => [...own])] as uPlot.AlignedData;
    const chart = new uPlot(options, data, element);
    const observer = new ResizeObserver(() => chart.setSize({ width: element.clientWidth, height }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      chart.destroy();
    };
  }, [times, series, height, isUtc, scheme]);
  return (
    <>
      <div class="chart" ref={place} role="img" aria-label={label} />
      <ul class="legend" aria-hidden="true">
        {series.map(({ name, values, format }, index) => (
          <li key={index}>
            <i class={`swatch swatch-${(index % 4) + 1}`} />
            <bdi class="legend-name">{name}</bdi>
            <span class="number">{hovered === null ? "" : words(values[hovered], format)}</span>
          </li>
        ))}
        <li class="number">{hovered === null || !isUtc ? "" : formatDay(times[hovered] ?? 0)}</li>
      </ul>
    </>
  );
}

const DAYS = [1, 2, 7, 14, 30].map((count) => count * 86_400);
const DAY = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", timeZone: "UTC" });

function formatDay(seconds: number): string {
  return DAY.format(seconds * 1000);
}

function words(value: number | null | undefined, format: (value: number) => string): string {
  return value === null || value === undefined ? "–" : format(value);
}

/** Return the colour scheme, whose change draws a chart again: a canvas does not follow styles. */
function useScheme(): boolean {
  const [isDark, setDark] = useState(false);
  useEffect(() => {
    const query = matchMedia("(prefers-color-scheme: dark)");
    const read = () => setDark(query.matches);
    read();
    query.addEventListener("change", read);
    return () => query.removeEventListener("change", read);
  }, []);
  return isDark;
}
