/** Lines over time, in SVG: its colours follow the styles of the page, and it needs no library. */
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

export interface ChartProps {
  /** What the chart shows, for those who cannot see it. */
  label: string;
  /** What the values belong to, in words, such as days; at least one. */
  names: readonly string[];
  /** At most four, because there are four colours. */
  series: readonly { name: string; values: readonly (number | null)[] }[];
  format: (value: number) => string;
}

const HEIGHT = 240;
const LEFT = 64;
const RIGHT = 12;
const TOP = 12;
const BOTTOM = 28;
/** The least width of a name below the axis. */
const NAME_WIDTH = 80;

export function Chart({ label, names, series, format }: ChartProps): JSX.Element {
  const place = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  const [hovered, setHovered] = useState<number | null>(null);
  useEffect(() => {
    const observer = new ResizeObserver(([entry]) => setWidth(Math.round(entry?.contentRect.width ?? 0)));
    observer.observe(place.current!);
    return () => observer.disconnect();
  }, []);
  const last = Math.max(1, names.length - 1);
  const ticks = ticksOf(Math.max(0, ...series.flatMap(({ values }) => values.map((value) => value ?? 0))));
  const xOf = (index: number) => LEFT + (index / last) * (width - LEFT - RIGHT);
  const yOf = (value: number) => HEIGHT - BOTTOM - (value / ticks.at(-1)!) * (HEIGHT - TOP - BOTTOM);
  const every = Math.max(1, Math.ceil((names.length * NAME_WIDTH) / Math.max(1, width - LEFT - RIGHT)));
  const hover = (event: PointerEvent) => {
    const x = event.clientX - place.current!.getBoundingClientRect().left;
    const index = Math.round(((x - LEFT) / (width - LEFT - RIGHT)) * last);
    setHovered(Math.min(names.length - 1, Math.max(0, index)));
  };
  return (
    <>
      <div class="chart" ref={place} onPointerMove={hover} onPointerLeave={() => setHovered(null)}>
        {width > 0 && (
          <svg width={width} height={HEIGHT} role="img" aria-label={label}>
            {ticks.map((tick) => (
              <g key={tick}>
                <line class="grid" x1={LEFT} x2={width - RIGHT} y1={yOf(tick)} y2={yOf(tick)} />
                <text x={LEFT - 8} y={yOf(tick) + 4} text-anchor="end">
                  {format(tick)}
                </text>
              </g>
            ))}
            {names.map(
              (name, index) =>
                // Counted from the end, so that the last day has its name.
                (names.length - 1 - index) % every === 0 && (
                  <text key={name} x={xOf(index)} y={HEIGHT - 8} text-anchor={index === last ? "end" : "middle"}>
                    {name}
                  </text>
                ),
            )}
            {series.map(({ values }, index) => (
              <Line
                key={index}
                colour={index}
                points={values.map((value, at) => [xOf(at), value === null ? null : yOf(value)])}
              />
            ))}
            {hovered !== null && (
              <line class="cursor" x1={xOf(hovered)} x2={xOf(hovered)} y1={TOP} y2={HEIGHT - BOTTOM} />
            )}
          </svg>
        )}
      </div>
      <ul class="chart-legend" aria-hidden="true">
        {series.map(({ name, values }, index) => (
          <li key={index}>
            <i class={`swatch swatch-${(index % 4) + 1}`} />
            <bdi class="legend-name">{name}</bdi>
            <span class="number">{hovered === null ? "" : wordsOf(values[hovered], format)}</span>
          </li>
        ))}
        <li>{hovered === null ? "" : names[hovered]}</li>
      </ul>
    </>
  );
}

type Point = readonly [number, number | null];

/** A line, broken where a value is not known. Few points are also marked. */
function Line({ points, colour }: { points: readonly Point[]; colour: number }): JSX.Element {
  let isBroken = true;
  const steps = points.map(([x, y]) => {
    const step = y === null ? "" : `${isBroken ? "M" : "L"}${x.toFixed(1)} ${y.toFixed(1)}`;
    isBroken = y === null;
    return step;
  });
  return (
    <g class={`line line-${(colour % 4) + 1}`}>
      <path d={steps.join("")} />
      {points.length < 15 && points.map(([x, y]) => y !== null && <circle key={x} cx={x} cy={y} r={3} />)}
    </g>
  );
}

/** Return round values from 0 to at least the largest one. */
function ticksOf(most: number): number[] {
  if (!(most > 0)) return [0, 1];
  const size = 10 ** Math.floor(Math.log10(most / 4));
  const step = [1, 2, 2.5, 5, 10].map((each) => each * size).find((each) => each * 4 >= most * 0.999) ?? size * 10;
  return Array.from({ length: Math.ceil((most / step) * 0.999) + 1 }, (_, index) => index * step);
}

function wordsOf(value: number | null | undefined, format: (value: number) => string): string {
  return value === null || value === undefined ? "–" : format(value);
}
