/** The steps of turns and responses in one form, for a timeline. */
import type { Schemas } from "../api";
import { toDate } from "../format";
import type { Turn } from "../turns";

export type TurnStep = Turn["steps"][number];
export type ResponseStep = Schemas["ResponseStep"];
export type StepUsage = Schemas["StepUsage"];

/** So many characters of an error are in the row of its step. */
export const SHORT = 160;

export type StepKind = "model" | "tool" | "shield" | "retrieval" | "compaction" | "wait";

export const KINDS: Readonly<Record<StepKind, string>> = {
  model: "Model call",
  tool: "Tool",
  shield: "Shield",
  retrieval: "Retrieval",
  compaction: "Compaction",
  wait: "Waiting for the client",
};

export interface TimedStep {
  id: string;
  kind: StepKind;
  /** What the step was about, such as the names of tools. */
  name: string;
  /** Milliseconds since 1970. */
  start: number;
  /** null: it has not ended. */
  end: number | null;
  firstTokenMs: number | null;
  /** The tokens and the dollars of a model call. */
  usage: StepUsage | null;
  /** Why it failed, in words; "" if it did not. */
  error: string;
  /** The step as the API returns it. */
  source: TurnStep | ResponseStep | null;
}

const TURN_KINDS: Readonly<Record<string, StepKind>> = {
  inference: "model",
  tool_execution: "tool",
  shield_call: "shield",
  memory_retrieval: "retrieval",
};

/**
 * Return the steps of a turn in order. A call of a tool of the client is a time in which the turn waited.
 * `clientTools` are the names of these tools.
 */
export function stepsOfTurn(turn: Turn, clientTools: ReadonlySet<string>): TimedStep[] {
  const shown = turn.steps.map((step) => {
    const timed = timedTurnStep(step);
    const isWait =
      step.step_type === "tool_execution" && step.tool_calls.every(({ tool_name }) => clientTools.has(tool_name));
    return isWait ? { ...timed, kind: "wait" as const } : timed;
  });
  const { unfinished_step: unfinished, output_message: last } = turn;
  if (turn.status === "awaiting_input") {
    const start = timeOr(turn.completed_at, shown.at(-1)?.end ?? timeOf(turn.started_at));
    const name = joinNames((last.tool_calls ?? []).map(({ tool_name }) => tool_name));
    shown.push({ ...NO_STEP, id: "wait", kind: "wait", name: `for ${name}`, start });
  }
  if (unfinished) {
    const start = timeOf(unfinished.started_at);
    shown.push({
      ...NO_STEP,
      id: unfinished.step_id,
      kind: TURN_KINDS[unfinished.step_type] ?? "model",
      name: "did not finish",
      start,
      end: timeOr(turn.completed_at, start),
      error: turn.error?.message ?? (turn.status === "cancelled" ? "The turn was cancelled in this step." : ""),
    });
  }
  return shown;
}

const NO_STEP = { end: null, firstTokenMs: null, usage: null, error: "", source: null };

function timedTurnStep(step: TurnStep): TimedStep {
  return {
    id: step.step_id,
    kind: TURN_KINDS[step.step_type ?? ""] ?? "model",
    name: nameOf(step),
    start: timeOf(step.started_at),
    end: timeOr(step.completed_at, timeOf(step.started_at)),
    firstTokenMs: step.step_type === "inference" ? (step.first_token_ms ?? null) : null,
    usage: step.step_type === "inference" ? (step.usage ?? null) : null,
    error: errorOf(step),
    source: step,
  };
}

const MOST_NAMES = 3;

function nameOf(step: TurnStep): string {
  if (step.step_type === "tool_execution") return joinNames(step.tool_calls.map(({ tool_name }) => tool_name));
  if (step.step_type === "inference") {
    const calls = step.model_response.tool_calls ?? [];
    return calls.length > 0 ? `calls ${joinNames(calls.map(({ tool_name }) => tool_name))}` : "answers";
  }
  if (step.step_type === "shield_call") return step.violation ? "found a violation" : "found nothing";
  return step.vector_db_ids ? `in ${step.vector_db_ids}` : "";
}

function joinNames(names: readonly string[]): string {
  const shown = names.slice(0, MOST_NAMES).join(", ");
  return names.length > MOST_NAMES ? `${shown} and ${names.length - MOST_NAMES} more` : shown;
}

function errorOf(step: TurnStep): string {
  if (step.step_type === "shield_call" && step.violation?.violation_level === "error")
    return step.violation.user_message || "A shield stopped this.";
  if (step.step_type !== "tool_execution") return "";
  const failed = step.tool_responses.find(({ metadata }) => metadata?.["error"]);
  return failed ? textOf(failed.content) || "The tool failed." : "";
}

/** Return the text of a content in any of the API's forms. */
export function textOf(content: unknown): string {
  if (content === null || content === undefined) return "";
  if (typeof content === "string") return content;
  if (Array.isArray(content)) return content.map(textOf).filter(Boolean).join("\n");
  const item = content as Readonly<Record<string, unknown>>;
  for (const name of ["text", "refusal", "content"]) if (typeof item[name] === "string") return item[name];
  if (typeof item["omitted_bytes"] === "number") return `[image of ${item["omitted_bytes"]} bytes]`;
  if (typeof item["type"] === "string" && item["type"].includes("image")) return "[image]";
  return JSON.stringify(content);
}

const RESPONSE_KINDS = { model_call: "model", tool_call: "tool", compaction: "compaction" } as const;

export function stepsOfResponse(steps: readonly ResponseStep[], end: number | null): TimedStep[] {
  return steps.map((step) => ({
    id: step.id,
    kind: RESPONSE_KINDS[step.type],
    name: step.tool_name ?? "",
    start: timeOf(step.started_at),
    end: step.completed_at ? timeOf(step.completed_at) : end,
    firstTokenMs: step.first_token_ms ?? null,
    usage: step.usage ?? null,
    error: step.error ?? "",
    source: step,
  }));
}

export function timeOf(moment: string | number): number {
  return toDate(moment).getTime();
}

function timeOr(moment: string | null | undefined, other: number): number {
  return moment ? timeOf(moment) : other;
}
