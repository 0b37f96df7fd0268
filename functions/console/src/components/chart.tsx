/** Charts over time. A page that needs them loads this file, with its library. */
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";

interface ChartProps {
  /** What the chart shows, for those who cannot see it. */
  label: string;
  /** Seconds since 1970, ascending. */
  times: readonly number[];
  series: readonly { name: string; values: readonly (number | null)[]; format: (value: number) => string }[];
  height?: number;
}

export default function Chart({ label, times, series, height = 240 }: ChartProps): JSX.Element {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = place.current!;
    const style = getComputedStyle(element);
    const axis = { stroke: style.getPropertyValue("--text-2"), grid: { stroke: style.getPropertyValue("--line") } };
    const drawn = series.map(({ name, format }, index) => ({
      label: name,
      stroke: style.getPropertyValue(`--series-${(index % 4) + 1}`),
      width: 2,
      value: (_: uPlot, value: number | null) => (value === null ? "–" : format(value)),
    }));
    const first = series[0]?.format ?? String;
    const axes = [axis, { ...axis, size: 72, values: (_: uPlot, values: number[]) => values.map(first) }];
    const options = { width: element.clientWidth, height, series: [{}, ...drawn], axes };
    const data = [[...times], ...series.map(({ values }) => [...values])] as uPlot.AlignedData;
    const chart = new uPlot(options, data, element);
    const observer = new ResizeObserver(() => chart.setSize({ width: element.clientWidth, height }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      chart.destroy();
    };
  }, [times, series, height]);
  return <div class="chart" ref={place} role="img" aria-label={label} />;
}
