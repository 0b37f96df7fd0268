/** A turn in its session. */
import type { JSX } from "preact";
import { addressOf, type Schemas } from "../api";
import { CopyAs } from "../components/copy";
import { JsonView } from "../components/json-view";
import { Badge, Money, Time, Tokens } from "../components/values";
import { formatMilliseconds, toDate } from "../format";
import { isRecord } from "../errors";
import { turnPath } from "../read/paths";
import { type JsonSchema, schemaOfParameters } from "../schema";
import type { Turn } from "../turns";
import type { Conversation } from "./conversation";
import { type Answers, type AskedForm, type PendingApproval, type PendingCall, PendingForm } from "./pending-form";
import { RunView } from "./run-view";
import { waitingCalls } from "./turn-parts";
import { failureOfTurn, type TurnBody, type TurnRun } from "./turn-run";
import { toast } from "../components/toast";

interface TurnViewProps {
  talk: Conversation;
  run: TurnRun;
  tools: readonly Schemas["ToolDef"][];
  onSendAgain: (run: TurnRun, body: TurnBody) => void;
}

export function TurnView({ talk, run, tools, onSendAgain }: TurnViewProps): JSX.Element {
  const { phase, error } = run.state.value;
  const body = talk.requestOf(run);
  const waiting = waitingOf(run, tools);
  const asked = new Set(run.state.value.document?.pending_approvals ?? []);
  const calls = waiting.filter(({ callId }) => !asked.has(callId));
  const fixed = run.state.value.document?.pending_arguments ?? {};
  const approvals = waiting
    .filter(({ callId }) => asked.has(callId))
    .map((call) => ({ ...toApproval(call, fixed[call.callId]), forms: formsOf(run, call.callId) }));
  const url = addressOf("/v1/agents/{agent_id}/session/{session_id}/turn", { ...talk.at }).href;
  const send = ({ results, approvals: decisions, inputs }: Answers) =>
    void talk.resume(run, {
      tool_responses: calls.map(({ callId, name }) => ({
        call_id: callId,
        tool_name: name,
        content: results[callId]!,
        metadata: null,
      })),
      ...(approvals.length > 0 && {
        approvals: approvals.map(({ requestId }) => ({
          call_id: requestId,
          approve: decisions[requestId]!,
          ...(inputs[requestId] && { input: inputs[requestId] }),
        })),
      }),
    });
  const sendAgain = () => {
    if (!talk.isKnown(run)) toast("The messages are sent again. Add the documents, if there were some.");
    onSendAgain(run, body!);
  };
  return (
    <RunView
      run={run}
      facts={(turn) => <TurnFacts turn={turn} />}
      failureOf={failureOfTurn}
      onRejoin={() => talk.rejoin(run)}
      onSendAgain={body && sendAgain}
      timeline={run.latest.id && turnPath(talk.at.agent_id, talk.at.session_id, run.latest.id)}
      code={(turn) => (
        <>
          {body && <CopyAs snippet={{ method: "POST", url, body: { ...body, stream: false } }} />}
          <JsonView value={turn} label="Turn" />
        </>
      )}
    >
      {waiting.length > 0 && (
        <PendingForm
          key={waiting[0]!.callId}
          id={`${run.latest.id ?? ""}.${waiting[0]!.callId}`}
          calls={calls}
          approvals={approvals}
          isBusy={phase === "running"}
          error={phase === "ended" ? error : null}
          onSend={send}
        />
      )}
    </RunView>
  );
}

/** Return the forms with which the server of a call's tool asks. */
function formsOf(run: TurnRun, callId: string): AskedForm[] {
  const forms = run.state.value.document?.pending_inputs?.[callId] ?? {};
  return Object.entries(forms).map(([key, { message, requested_schema: schema }]) => ({ key, message, schema }));
}

/** Return a call for approval with the arguments with which it runs: args of the agent replace those of the model. */
function toApproval({ callId, name, input }: PendingCall, fixed?: Readonly<Record<string, unknown>>): PendingApproval {
  const shown = fixed ? JSON.stringify({ ...parseObject(input), ...fixed }) : input;
  return { requestId: callId, server: "", name, input: shown };
}

function parseObject(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) ? value : {};
  } catch {
    return {};
  }
}

/** Return the calls that wait, with the schemas of their tools. */
function waitingOf(run: TurnRun, tools: readonly Schemas["ToolDef"][]): PendingCall[] {
  const { document } = run.state.value;
  if (!document) return [];
  return waitingCalls(document).map((call) => {
    const tool = tools.find(({ name }) => name === call.tool_name);
    const given = typeof call.arguments === "string" ? call.arguments : JSON.stringify(call.arguments);
    const declared = tool?.metadata?.["output_schema"];
    return {
      callId: call.call_id,
      name: call.tool_name,
      input: call.arguments_json ?? given,
      description: tool?.description ?? "",
      schema: tool ? schemaOfParameters(tool.parameters ?? []) : null,
      resultSchema: isRecord(declared) ? (declared as JsonSchema) : null,
    };
  });
}

/** When a turn began, how long it took, and what it cost. */
export function TurnFacts({ turn }: { turn: Turn }): JSX.Element {
  const took = turn.completed_at ? toDate(turn.completed_at).getTime() - toDate(turn.started_at).getTime() : null;
  return (
    <p class="facts-line hint">
      {turn.status !== "completed" && <Badge status={turn.status} />}
      <Time at={turn.started_at} />
      {took !== null && <span class="number">{formatMilliseconds(took)}</span>}
      {turn.usage && <Tokens count={turn.usage.total_tokens ?? 0} />}
      {typeof turn.receipt?.dollars === "number" && <Money dollars={turn.receipt.dollars} />}
    </p>
  );
}
