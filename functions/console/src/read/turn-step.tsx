/** The input and the output of a step of a turn. */
import type { JSX } from "preact";
import { addressOf } from "../api";
import { CopyAs } from "../components/copy";
import { LongText } from "../components/long-text";
import { Json, JsonView } from "../components/json-view";
import { cut } from "../format";
import { Link } from "../router";
import { prettyJson } from "../talk/content";
import type { Turn, TurnPlace } from "../turns";
import { MessageView, Some } from "./message-view";
import { ModelInputView } from "./model-input";
import { API_TURN, sessionPath } from "./paths";
import { SHORT, type TimedStep, textOf, type TurnStep } from "./steps";

interface TurnStepViewProps {
  at: TurnPlace;
  turn: Turn;
  step: TimedStep;
}

export function TurnStepView({ at, turn, step }: TurnStepViewProps): JSX.Element {
  const params = { ...at, turn_id: turn.turn_id, step_id: step.id };
  const path = addressOf(`${API_TURN}/step/{step_id}`, params);
  const source = step.source as TurnStep | null;
  return (
    <>
      {step.error.length > SHORT && <p class="field-error state-text">{cut(step.error, 4000)}</p>}
      {source ? <Content step={source} /> : <Unfinished step={step} at={at} />}
      {step.kind === "model" && <ModelInputView path={apiPath(`${API_TURN}/step/{step_id}/input`, params)} />}
      {source && (
        <Json value={source} label="Step">
          <CopyAs snippet={{ method: "GET", url: path.href }} />
        </Json>
      )}
    </>
  );
}

/** Return a path of the API with values in the place of its variables. */
export function apiPath(path: string, params: Readonly<Record<string, string>>): string {
  return path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(params[name] ?? ""));
}

function Unfinished({ step, at }: { step: TimedStep; at: TurnPlace }): JSX.Element {
  if (step.kind === "wait") {
    return (
      <p>
        The turn goes on when these calls are answered.{" "}
        <Link to={sessionPath(at.agent_id, at.session_id)}>Answer them in the session</Link>
      </p>
    );
  }
  return <p class="hint">{step.end === null ? "This step has not ended yet." : "This step has no output."}</p>;
}

function Content({ step }: { step: TurnStep }): JSX.Element {
  switch (step.step_type) {
    case "tool_execution":
      return (
        <Some items={step.tool_calls} noun="calls">
          {(call, index) => {
            const response = step.tool_responses.find(({ call_id }) => call_id === call.call_id);
            const given = typeof call.arguments === "string" ? call.arguments : JSON.stringify(call.arguments);
            return (
              <div key={index} class="labelled">
                <p>
                  <code>{cut(call.tool_name, 200)}</code>
                </p>
                <p class="hint">Input</p>
                <LongText text={prettyJson(call.arguments_json ?? given) || "no arguments"} label="Input" />
                <p class="hint">Output</p>
                <LongText text={response ? prettyJson(textOf(response.content)) || "empty" : "none"} label="Output" />
                {response?.metadata && Object.keys(response.metadata).length > 0 && (
                  <JsonView value={response.metadata} label="Metadata of the result" />
                )}
              </div>
            );
          }}
        </Some>
      );
    case "shield_call":
      return step.violation ? (
        <>
          <p class="state-text">{cut(step.violation.user_message || "A violation without a message", 4000)}</p>
          <JsonView value={step.violation} label="Violation" />
        </>
      ) : (
        <p class="hint">The shield found nothing.</p>
      );
    case "memory_retrieval":
      return (
        <div class="labelled">
          <p class="hint">{step.vector_db_ids ? `Searched: ${cut(step.vector_db_ids, 1000)}` : "A summary"}</p>
          <LongText text={textOf(step.inserted_context) || "Nothing was found."} label="What was inserted" />
        </div>
      );
    default:
      return (
        <div class="labelled">
          <p class="hint">Output</p>
          <MessageView message={{ ...step.model_response }} />
        </div>
      );
  }
}
