/** A response on its page. */
import type { JSX } from "preact";
import { addressOf } from "../api";
import { CopyAs } from "../components/copy";
import { Id } from "../components/facts";
import { JsonView } from "../components/json-view";
import { Badge, Money, Time, Tokens } from "../components/values";
import { cut, formatSeconds } from "../format";
import { responsePath } from "../read/paths";
import type { JsonSchema } from "../schema";
import { type Answers, type PendingCall, PendingForm } from "./pending-form";
import type { ResponseChain } from "./response-chain";
import { openItems } from "./response-parts";
import { failureOfResponse, type ResponseBody, type ResponseRun, type StoredResponse } from "./response-run";
import { plain, type Sent } from "./run";
import { RunView } from "./run-view";

/** The input that answers what a response waits for. */
export interface Pending {
  input: ResponseBody["input"];
  sent: readonly Sent[];
}

interface ResponseViewProps {
  chain: ResponseChain;
  run: ResponseRun;
  /** Nothing follows: what the response waits for can be answered. */
  isLast: boolean;
  onAnswer: (pending: Pending) => void;
  onSendAgain: (body: ResponseBody) => void;
}

export function ResponseView({ chain, run, isLast, onAnswer, onSendAgain }: ResponseViewProps): JSX.Element {
  const { document } = run.state.value;
  const body = chain.requestOf(run);
  const { calls, approvals } = document && isLast ? openItems(document) : { calls: [], approvals: [] };
  const answer = ({ results, approvals: decisions }: Answers) => {
    const outputs = calls.map(({ call_id }) => ({ type: "function_call_output", call_id, output: results[call_id]! }));
    const decided = approvals.map(({ id: approval_request_id }) => ({
      type: "mcp_approval_response",
      approval_request_id: approval_request_id!,
      approve: decisions[approval_request_id!]!,
    }));
    onAnswer({
      input: [...outputs, ...decided] as unknown as ResponseBody["input"],
      sent: [
        ...calls.map(({ call_id, name }) => plain(`Result of ${name}: ${results[call_id]}`)),
        ...approvals.map(({ id: asked, name }) => plain(`${decisions[asked!] ? "Approved" : "Denied"}: ${name}`)),
      ],
    });
  };
  return (
    <RunView
      run={run}
      facts={(response) => <ResponseFacts response={response} />}
      failureOf={failureOfResponse}
      onRejoin={() => chain.rejoin(run)}
      onSendAgain={body && (() => onSendAgain(body))}
      timeline={document && responsePath(document.id)}
      code={(response) => (
        <>
          <Id id={response.id} of="the response" />
          {body && <CopyAs snippet={{ method: "POST", url: addressOf("/v1/responses").href, body }} />}
          <JsonView value={response} label="Response" />
        </>
      )}
    >
      {calls.length + approvals.length > 0 && document && (
        <PendingForm
          key={document.id}
          id={document.id}
          calls={calls.map((call) => toPending(call, document))}
          approvals={approvals.map((each) => ({
            requestId: each.id ?? "",
            server: each.server_label,
            name: each.name,
            input: each.arguments,
          }))}
          isBusy={false}
          error={null}
          onSend={answer}
        />
      )}
    </RunView>
  );
}

function toPending(call: ReturnType<typeof openItems>["calls"][number], { tools = [] }: StoredResponse): PendingCall {
  const tool = tools.find((each) => "name" in each && each.name === call.name);
  const known = tool && "parameters" in tool ? tool : null;
  return {
    callId: call.call_id,
    name: call.name,
    input: call.arguments,
    description: known?.description ?? "",
    schema: (known?.parameters as JsonSchema | undefined) ?? null,
    resultSchema: null,
  };
}

function ResponseFacts({ response }: { response: StoredResponse }): JSX.Element {
  const { created_at, completed_at, status, usage, receipt, model } = response;
  const tokens = receipt ? receipt.input_tokens + receipt.output_tokens : (usage?.total_tokens ?? null);
  return (
    <p class="facts-line hint">
      {status !== "completed" && <Badge status={status} />}
      <Time at={created_at} />
      {completed_at && <span class="number">{formatSeconds(completed_at - created_at)}</span>}
      {tokens !== null && <Tokens count={tokens} />}
      {typeof receipt?.dollars === "number" && <Money dollars={receipt.dollars} />}
      <span class="mono">{cut(model, 100)}</span>
    </p>
  );
}
