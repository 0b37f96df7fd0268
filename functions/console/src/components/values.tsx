/** Values as readers expect them: times, money, tokens, states. */
import type { JSX } from "preact";
import { formatCount, formatDollars, formatTime, formatUtc, type Moment, toDate } from "../format";

export function Time({ at }: { at: Moment }): JSX.Element {
  const date = toDate(at);
  return (
    <time dateTime={Number.isNaN(date.getTime()) ? "" : date.toISOString()} title={formatUtc(at)}>
      {formatTime(at)}
    </time>
  );
}

export function Money({ dollars }: { dollars: number }): JSX.Element {
  return (
    <span class="number" title={`$${dollars}`}>
      {formatDollars(dollars)}
    </span>
  );
}

export function Tokens({ count }: { count: number }): JSX.Element {
  return (
    <span class="number">
      {formatCount(count)} {count === 1 ? "token" : "tokens"}
    </span>
  );
}

const TONES: Readonly<Record<string, "good" | "bad" | "busy">> = {
  completed: "good",
  succeeded: "good",
  active: "good",
  processed: "good",
  failed: "bad",
  blocked: "bad",
  error: "bad",
  expired: "bad",
  revoked: "bad",
  interrupted: "bad",
  running: "busy",
  in_progress: "busy",
  queued: "busy",
  waiting: "busy",
  awaiting_input: "busy",
};

export function Badge({ status }: { status: string }): JSX.Element {
  return <span class={`badge badge-${TONES[status] ?? "plain"}`}>{status.replaceAll("_", " ")}</span>;
}
