/** Steps as bars on one axis. However many there are, a bounded number is on the page. */
import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { Button } from "../components/button";
import { EmptyState } from "../components/states";
import { cut, formatCount, formatDollars, formatMilliseconds } from "../format";
import { KINDS, SHORT, type StepKind, type StepUsage, type TimedStep } from "./steps";

const SHOWN = 100;
/** The width of the axis in units of the drawing. */
const WIDTH = 1000;
/** A bar is at least so wide that it can be seen. */
const LEAST = 4;

interface TimelineProps {
  steps: readonly TimedStep[];
  /** The beginning and the end of the axis, in milliseconds since 1970. */
  start: number;
  end: number;
  /** The content of a step that is open. */
  children: (step: TimedStep) => JSX.Element;
}

type Choice = "" | "failed" | StepKind;

export function Timeline({ steps, start, end, children }: TimelineProps): JSX.Element {
  const [choice, setChoice] = useState<Choice>("");
  const [first, setFirst] = useState(0);
  const chosen = useMemo(
    () => steps.filter((step) => !choice || (choice === "failed" ? step.error : step.kind === choice)),
    [steps, choice],
  );
  if (steps.length === 0) return <EmptyState title="No step is stored" />;
  const begin = Math.min(first, Math.max(0, chosen.length - 1));
  const later = chosen.length - begin - SHOWN;
  const axis = { start, length: Math.max(1, end - start) };
  const failed = steps.filter(({ error }) => error).length;
  return (
    <div class="timeline">
      <Overview steps={steps} axis={axis} />
      {steps.length > 8 && (
        <label class="inline-field timeline-filter">
          <span>Show</span>
          <select
            value={choice}
            onChange={(event) => {
              setChoice(event.currentTarget.value as Choice);
              setFirst(0);
            }}
          >
            <option value="">all {formatCount(steps.length)} steps</option>
            {failed > 0 && <option value="failed">what failed ({formatCount(failed)})</option>}
            {kindsIn(steps).map(([kind, count]) => (
              <option key={kind} value={kind}>
                {KINDS[kind]} ({formatCount(count)})
              </option>
            ))}
          </select>
        </label>
      )}
      {begin > 0 && (
        <Button kind="quiet" onClick={() => setFirst(Math.max(0, begin - SHOWN))}>
          Show earlier steps ({formatCount(begin)} more)
        </Button>
      )}
      <ol class="plain-list timeline-rows" aria-label="Steps">
        {chosen.slice(begin, begin + SHOWN).map((step) => (
          <li key={step.id}>
            <Row step={step} axis={axis}>
              {children}
            </Row>
          </li>
        ))}
      </ol>
      {later > 0 && (
        <div class="actions">
          <Button kind="quiet" onClick={() => setFirst(begin + SHOWN)}>
            Show later steps ({formatCount(later)} more)
          </Button>
          <Button kind="quiet" onClick={() => setFirst(chosen.length - SHOWN)}>
            To the last steps
          </Button>
        </div>
      )}
    </div>
  );
}

function kindsIn(steps: readonly TimedStep[]): [StepKind, number][] {
  const counts = new Map<StepKind, number>();
  for (const { kind } of steps) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  return [...counts];
}

interface Axis {
  start: number;
  length: number;
}

/** Return the place and the width of a step on the axis. */
function placeOf({ start, end }: TimedStep, axis: Axis): [number, number] {
  const from = Math.min(1, Math.max(0, (start - axis.start) / axis.length));
  const to = end === null ? 1 : Math.min(1, Math.max(from, (end - axis.start) / axis.length));
  const width = Math.max(LEAST, (to - from) * WIDTH);
  return [Math.min(from * WIDTH, WIDTH - width), width];
}

/** All steps in one line: a path for each kind. */
function Overview({ steps, axis }: { steps: readonly TimedStep[]; axis: Axis }): JSX.Element {
  const paths = useMemo(() => {
    const found = new Map<string, string[]>();
    for (const step of steps) {
      const [x, width] = placeOf(step, axis);
      const name = step.error ? "failed" : step.kind;
      const path = found.get(name) ?? [];
      path.push(`M${x.toFixed(1)} 0h${width.toFixed(1)}v20h-${width.toFixed(1)}z`);
      found.set(name, path);
    }
    return [...found].map(([name, path]) => [name, path.join("")] as const);
  }, [steps, axis.start, axis.length]);
  return (
    <figure class="overview">
      <svg viewBox={`0 0 ${WIDTH} 20`} preserveAspectRatio="none" aria-hidden="true">
        {paths.map(([name, path]) => (
          <path key={name} class={`bar bar-${name}`} d={path} />
        ))}
      </svg>
      <figcaption>
        <span class="axis">
          {[0, 0.25, 0.5, 0.75, 1].map((part) => (
            <span key={part} class="number">
              {formatMilliseconds(part * axis.length)}
            </span>
          ))}
        </span>
        <span class="legend">
          {paths.map(([name]) => (
            <span key={name}>
              <svg viewBox="0 0 10 10" width="10" height="10" aria-hidden="true">
                <rect class={`bar bar-${name}`} width="10" height="10" rx="2" />
              </svg>
              {name === "failed" ? "Failed" : KINDS[name as StepKind]}
            </span>
          ))}
        </span>
      </figcaption>
    </figure>
  );
}

interface RowProps {
  step: TimedStep;
  axis: Axis;
  children: (step: TimedStep) => JSX.Element;
}

function Row({ step, axis, children }: RowProps): JSX.Element {
  // The step in which a run failed is what a reader looks for.
  const [isOpen, setOpen] = useState(step.source === null && step.error !== "");
  const [x, width] = placeOf(step, axis);
  const took = step.end === null ? null : step.end - step.start;
  const tone = step.error ? "failed" : step.kind;
  return (
    <details
      class={`part timeline-row${step.error ? " is-failed" : ""}`}
      open={isOpen}
      onToggle={(event) => setOpen(event.currentTarget.open)}
    >
      <summary>
        <span class="timeline-name">
          <span class="part-label">{KINDS[step.kind]}</span>
          <span class="part-line">{cut(step.name, 120)}</span>
        </span>
        <svg class="timeline-bar" viewBox={`0 0 ${WIDTH} 20`} preserveAspectRatio="none" aria-hidden="true">
          <rect class={`bar bar-${tone}`} x={x} width={width} height="20" />
          {step.firstTokenMs !== null && (
            <rect
              class="bar-wait-token"
              x={x}
              width={Math.min(width, (step.firstTokenMs / axis.length) * WIDTH)}
              height="20"
            />
          )}
        </svg>
        <span class="timeline-time number">
          {took === null ? (step.kind === "wait" ? "waits …" : "runs …") : formatMilliseconds(took)}
        </span>
        {step.usage && <span class="timeline-usage number">{costOf(step.usage)}</span>}
        {step.error && <span class="timeline-error">{cut(step.error, SHORT)}</span>}
      </summary>
      {isOpen && (
        <div class="part-body">
          <p class="facts-line hint">
            <span class="number">began after {formatMilliseconds(Math.max(0, step.start - axis.start))}</span>
            {took !== null && <span class="number">took {formatMilliseconds(took)}</span>}
            {step.firstTokenMs !== null && (
              <span class="number">first token after {formatMilliseconds(step.firstTokenMs)}</span>
            )}
            {step.usage &&
              tokensOf(step.usage).map((text) => (
                <span key={text} class="number">
                  {text}
                </span>
              ))}
          </p>
          {children(step)}
        </div>
      )}
    </details>
  );
}

/** Return the tokens of a model call and its dollars, if its price is known, in one line. */
function costOf({ input_tokens: input, output_tokens: output, dollars }: StepUsage): string {
  const tokens = `${formatCount(input)} → ${formatCount(output)} tokens`;
  return dollars == null ? tokens : `${tokens} · ${formatDollars(dollars)}`;
}

function tokensOf(usage: StepUsage): string[] {
  const { cached_tokens: cached, reasoning_tokens: reasoning, dollars } = usage;
  return [
    `${formatCount(usage.input_tokens)} tokens of input${cached ? `, ${formatCount(cached)} from the cache` : ""}`,
    `${formatCount(usage.output_tokens)} of output${reasoning ? `, ${formatCount(reasoning)} of reasoning` : ""}`,
    dollars == null ? "price unknown" : formatDollars(dollars),
  ];
}
