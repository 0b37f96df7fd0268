/** The steps of a turn, from its events or as it was stored. */
import type { Schemas } from "../api";
import type { Turn, TurnPayload } from "../turns";
import { readContent } from "./content";
import type { CallPart, Transcript } from "./transcript";

type ToolCall = Schemas["ToolCall"];
type Step = Turn["steps"][number];

/** Show the event of a turn. */
export function addTurnEvent(to: Transcript, payload: TurnPayload): void {
  switch (payload.event_type) {
    case "step_start":
      return startStep(to, payload);
    case "step_progress":
      return addProgress(to, payload);
    case "step_complete":
      return finishStep(to, payload.step_details);
    case "turn_complete":
    case "turn_awaiting_input":
      return finishTurn(to, payload.turn);
  }
}

/** Show a turn as it was stored. */
export function addTurn(to: Transcript, turn: Turn): void {
  for (const step of turn.steps) finishStep(to, step);
  if (turn.status !== "in_progress") finishTurn(to, turn);
}

function startStep(to: Transcript, { step_type, step_id, metadata = {} }: Schemas["StepStart"]): void {
  if (step_type === "shield_call")
    to.put(step_id, { kind: "shield", isDone: false, violation: "", level: "", metadata: metadata });
  if (step_type === "memory_retrieval")
    to.put(step_id, { kind: "retrieval", isDone: false, stores: "", content: null });
}

function addProgress(to: Transcript, { step_id, delta }: Schemas["StepProgress"]): void {
  if (delta.type === "text") to.append(`${step_id}:text`, "text", delta.text);
  // The result of a call has its images, too.
  else if (delta.type === "tool_call" && typeof delta.tool_call !== "string") addCall(to, delta.tool_call);
}

function addCall(to: Transcript, call: ToolCall): void {
  const before = to.get(call.call_id);
  if (before) return;
  const given = typeof call.arguments === "string" ? call.arguments : JSON.stringify(call.arguments);
  to.put(call.call_id, {
    kind: "call",
    label: "Tool",
    name: call.tool_name,
    callId: call.call_id,
    input: call.arguments_json ?? given,
    status: "running",
    output: null,
    images: [],
    error: "",
  });
}

function finishStep(to: Transcript, step: Step): void {
  switch (step.step_type) {
    case "tool_execution":
      for (const call of step.tool_calls) addCall(to, call);
      for (const result of step.tool_responses) addResult(to, result);
      break;
    case "shield_call":
      to.put(step.step_id, {
        kind: "shield",
        isDone: true,
        violation: step.violation ? step.violation.user_message || "The text was blocked." : "",
        level: step.violation?.violation_level ?? "",
        metadata: { ...step.metadata, ...step.violation?.metadata },
      });
      break;
    case "memory_retrieval": {
      const { step_id, vector_db_ids: stores, inserted_context: content } = step;
      to.put(step_id, { kind: "retrieval", isDone: true, stores, content });
      break;
    }
    default:
      finishAnswer(to, step as Schemas["InferenceStep"]);
  }
}

function finishAnswer(to: Transcript, { step_id, model_response: answer }: Schemas["InferenceStep"]): void {
  const { text } = readContent(answer.content);
  const id = `${step_id}:text`;
  if (text || to.get(id)) to.put(id, { kind: "text", text, citations: [], isDone: true });
  for (const call of answer.tool_calls ?? []) addCall(to, call);
  if (answer.stop_reason === "out_of_tokens")
    to.put(`${step_id}:cut`, {
      kind: "note",
      title: "The answer reached its token limit",
      lines: [],
      isFailed: true,
    });
}

function addResult(to: Transcript, result: Schemas["ToolResponse"]): void {
  const call = to.get(result.call_id);
  const { images } = readContent(result.content);
  const isFailed = result.metadata?.["error"] === true;
  const changes: Partial<CallPart> = { status: isFailed ? "failed" : "completed", output: result.content, images };
  if (call?.kind === "call") to.put(result.call_id, { ...call, ...changes });
  else {
    const known = { kind: "call", label: "Tool", name: result.tool_name, callId: result.call_id, input: "" } as const;
    to.put(result.call_id, { ...known, status: "completed", output: null, images: [], error: "", ...changes });
  }
}

/** Mark what the turn waits for, and what has no result. */
function finishTurn(to: Transcript, turn: Turn): void {
  const waiting = new Set(waitingCalls(turn).map((call) => call.call_id));
  for (const { id, latest } of to.latest) {
    if (latest.kind === "call" && (latest.status === "running" || latest.status === "waiting"))
      to.change(id, "call", { status: waiting.has(latest.callId) ? "waiting" : "incomplete" });
    if (latest.kind === "text" && !latest.isDone) to.put(id, { ...latest, isDone: true });
  }
}

/** Return the calls that a turn waits for. */
export function waitingCalls(turn: Turn): readonly ToolCall[] {
  return turn.status === "awaiting_input" ? (turn.output_message.tool_calls ?? []) : [];
}
