/** How a turn or a response ended, why it failed, and what it cost. */
import type { ComponentChildren, JSX } from "preact";
import type { Schemas } from "../api";
import { Badge, Money, Time } from "../components/values";
import { cut, formatCount, formatMilliseconds, type Moment } from "../format";
import { KINDS, type TimedStep } from "./steps";

type Receipt = Schemas["Receipt"];

interface Failure {
  message: string;
  code: string;
}

/** What readers can do about an error, by its code. */
const ADVICE: Readonly<Record<string, string>> = {
  model_error: "The model's provider failed, or refused the request.",
  model_unauthorized: "The provider does not accept the server's credentials. Its operator can replace them.",
  model_overloaded: "The provider has no capacity for now. Send the message again later.",
  rate_limit_exceeded: "No more requests are allowed for now. Send the message again later.",
  context_length_exceeded: "The messages are too long for the model. Begin a new session, or choose another model.",
  tool_unavailable: "The server of the tool does not answer. Look at it under tools.",
  tool_unauthorized: "The server of the tool does not accept the credentials. Send them with the request.",
  insufficient_quota: "A budget is spent. An administrator can raise it.",
  shield_failed: "A shield could not check this, so nothing was let through.",
  deadline_exceeded: "It took longer than it may. Look for the longest bar below.",
  interrupted: "The process that ran it ended early. Send the message again.",
  stopped: "An administrator has stopped this.",
  store_unavailable: "The database did not answer. Send the message again.",
};

interface FailureProps {
  failure: Failure;
  /** The step in which it failed. */
  step: TimedStep | undefined;
  start: number;
}

export function FailureCard({ failure, step, start }: FailureProps): JSX.Element {
  const advice = ADVICE[failure.code];
  return (
    <section class="state state-error" aria-label="Why it failed">
      <p class="state-title">
        {step
          ? `Failed in a ${KINDS[step.kind].toLowerCase()}${toolOf(step)}, ${formatMilliseconds(Math.max(0, (step.end ?? step.start) - start))} after its start`
          : "Failed"}
      </p>
      <p class="state-text">{cut(failure.message, 2000)}</p>
      {advice && (
        <p class="state-text">
          {advice}
          {step?.kind === "model" && " Open the step below to read what the model saw."}
        </p>
      )}
      <p class="hint">
        Code <code>{cut(failure.code, 100)}</code>
      </p>
    </section>
  );
}

function toolOf({ kind, name, source }: TimedStep): string {
  return kind === "tool" && source ? ` (${cut(name, 100)})` : "";
}

export function Notice({ title, children }: { title: string; children?: ComponentChildren }): JSX.Element {
  return (
    <section class="state state-notice">
      <p class="state-title">{title}</p>
      {children}
    </section>
  );
}

interface FactsProps {
  status: string;
  startedAt: Moment;
  /** Milliseconds, or null while it runs. */
  took: number | null;
  firstTokenMs: number | null;
  model: string | null;
  usage: { input_tokens?: number; output_tokens?: number; total_tokens?: number } | null | undefined;
  receipt: Receipt | null | undefined;
  steps: number;
}

/** Numbers, with the ones that are asked for most in large. */
export function RunFacts({
  status,
  startedAt,
  took,
  firstTokenMs,
  model,
  usage,
  receipt,
  steps,
}: FactsProps): JSX.Element {
  const tokens = receipt ?? usage;
  const cached = receipt?.cached_tokens ?? 0;
  return (
    <dl class="figures">
      <Figure title="Status" note={model ? `model ${model}` : ""}>
        <Badge status={status} />
      </Figure>
      <Figure title="Cost">
        <Cost receipt={receipt} isRunning={RUNNING.has(status)} />
      </Figure>
      <Figure title="Tokens" note={tokens ? tokensInWords(tokens, cached, receipt?.reasoning_tokens ?? 0) : ""}>
        {tokens
          ? formatCount((tokens.input_tokens ?? 0) + (tokens.output_tokens ?? 0))
          : RUNNING.has(status)
            ? "not known yet"
            : "not counted"}
      </Figure>
      <Figure title="Time" note={firstTokenMs === null ? "" : `first token after ${formatMilliseconds(firstTokenMs)}`}>
        {took === null ? (RUNNING.has(status) ? "runs …" : "not known") : formatMilliseconds(took)}
      </Figure>
      <Figure title="Steps" note={receipt ? callsInWords(receipt) : ""}>
        {steps === 0 && receipt ? "not stored" : formatCount(steps)}
      </Figure>
      <Figure title="Started">
        <Time at={startedAt} />
      </Figure>
    </dl>
  );
}

const RUNNING: ReadonlySet<string> = new Set(["queued", "in_progress"]);

function Figure({
  title,
  note = "",
  children,
}: {
  title: string;
  note?: string;
  children: ComponentChildren;
}): JSX.Element {
  return (
    <div class="figure">
      <dt>{title}</dt>
      <dd>
        <span class="figure-value">{children}</span>
        {note && <span class="hint figure-note">{cut(note, 100)}</span>}
      </dd>
    </div>
  );
}

function Cost({ receipt, isRunning }: { receipt: Receipt | null | undefined; isRunning: boolean }): JSX.Element {
  // A copied turn has none, because its original was paid.
  if (!receipt) return <>{isRunning ? "not known yet" : "none of its own"}</>;
  const { dollars, model_dollars, infrastructure_dollars } = receipt;
  return (
    <>
      {dollars === null ? "not known" : <Money dollars={dollars} />}
      <span class="hint figure-note">
        model {model_dollars === null ? "price not known" : <Money dollars={model_dollars} />}, infrastructure{" "}
        <Money dollars={infrastructure_dollars} />
      </span>
    </>
  );
}

function tokensInWords(
  { input_tokens = 0, output_tokens = 0 }: { input_tokens?: number; output_tokens?: number },
  cached: number,
  reasoning: number,
): string {
  const of = (count: number, word: string) => (count > 0 ? ` (${formatCount(count)} ${word})` : "");
  return `${formatCount(input_tokens)} in${of(cached, "cached")}, ${formatCount(output_tokens)} out${of(reasoning, "reasoning")}`;
}

function callsInWords({ model_calls, tool_calls }: Receipt): string {
  const count = (number: number, noun: string) => `${formatCount(number)} ${noun}${number === 1 ? "" : "s"}`;
  return `${count(model_calls, "model call")}, ${count(tool_calls, "tool call")} on the server`;
}
