import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { addressOf, post } from "../../api";
import { Button } from "../../components/button";
import { CopyAs } from "../../components/copy";
import { TextField } from "../../components/field";
import { ErrorState } from "../../components/states";
import { Step } from "../../components/step";
import { type ApiError, toApiError } from "../../errors";
import { reconnectingWords } from "../../session";
import { plain, Run } from "../../talk/run";
import { PartView } from "../../talk/part-view";
import { type TurnRun, turnReader } from "../../talk/turn-run";
import { TurnFacts } from "../../talk/turn-view";
import { followTurn, startTurn, type TurnPlace } from "../../turns";
import type { Agent } from "./agent-step";

/** The turn of this tab, so that a reload shows it. */
const KEPT = "stint.start.turn";

interface KeptTurn extends TurnPlace {
  turnId: string;
  message: string;
}

interface HelloStepProps {
  agent: Agent | null;
  isDone: boolean;
  onAnswer: () => void;
}

export function HelloStep({ agent, isDone, onAnswer }: HelloStepProps): JSX.Element {
  return (
    <Step number={2} title="Say hello" isDone={isDone}>
      {agent ? (
        <Conversation key={agent.agent_id} agent={agent} onAnswer={onAnswer} />
      ) : (
        <p class="hint">First make an agent.</p>
      )}
    </Step>
  );
}

function Conversation({ agent, onAnswer }: { agent: Agent; onAnswer: () => void }): JSX.Element {
  const [message, setMessage] = useState("Hello");
  const [session, setSession] = useState<string | null>(null);
  const [error, setError] = useState<ApiError | null>(null);
  const [run, setRun] = useState<TurnRun | null>(null);
  const live = run?.state.value;
  const sent = run?.sent.value[0]?.text ?? "";
  useEffect(() => {
    const kept = readKept(agent.agent_id);
    if (!kept) return;
    const known: TurnRun = new Run(turnReader(kept), [plain(kept.message)], { id: kept.turnId, phase: "running" });
    setSession(kept.session_id);
    setRun(known);
    void known.follow((options) => followTurn(kept, kept.turnId, null, options));
  }, []);
  useEffect(() => () => run?.close(), [run]);
  useEffect(() => {
    if (!live?.id || !session) return;
    keepTurn({ agent_id: agent.agent_id, session_id: session, turnId: live.id, message: sent });
    if (sent === message) setMessage("");
  }, [live?.id, session]);
  useEffect(() => {
    if (live?.document?.status === "completed") onAnswer();
  }, [live?.document]);
  const submit = async (event: Event) => {
    event.preventDefault();
    setError(null);
    try {
      const at = { agent_id: agent.agent_id, session_id: session ?? (await createSession(agent.agent_id)) };
      setSession(at.session_id);
      const started: TurnRun = new Run(turnReader(at), [plain(message)]);
      setRun(started);
      const body = { messages: [{ role: "user" as const, content: message, context: null }] };
      await started.follow((options) => startTurn(at, body, options));
    } catch (failure) {
      setError(toApiError(failure));
    }
  };
  const rejoin = () => {
    if (!live?.id || !session) return;
    const at = { agent_id: agent.agent_id, session_id: session };
    const id = live.id;
    const again: TurnRun = new Run(turnReader(at), [plain(sent)], { id, phase: "running" });
    setRun(again);
    void again.follow((options) => followTurn(at, id, null, options));
  };
  const params = { agent_id: agent.agent_id, session_id: session ?? "SESSION" };
  const url = addressOf("/v1/agents/{agent_id}/session/{session_id}/turn", params).href;
  const body = { messages: [{ role: "user", content: message || sent }], stream: false };
  return (
    <div class="stack">
      {run && <Exchange run={run} />}
      <form class="stack" onSubmit={(event) => void submit(event)}>
        <TextField label="Message" rows={2} placeholder="Write a message" value={message} onText={setMessage} />
        {error && <ErrorState error={error} />}
        {!error && live?.error && <ErrorState error={live.error} {...(live.id && { onRetry: rejoin })} />}
        <div class="actions">
          <Button
            type="submit"
            kind="primary"
            busy={live !== undefined && live.phase !== "ended"}
            disabled={!message.trim()}
          >
            Send
          </Button>
          {session && <CopyAs snippet={{ method: "POST", url, body }} />}
        </div>
      </form>
    </div>
  );
}

/** A message and its answer, as it arrives. */
function Exchange({ run }: { run: TurnRun }): JSX.Element {
  const { phase, isReconnecting, document } = run.state.value;
  const parts = run.transcript.parts.value;
  const isRunning = phase !== "ended";
  return (
    <div class="exchange">
      <p class="message-of-user">{run.sent.value[0]?.text}</p>
      <div class="message-of-agent" aria-live="polite" aria-busy={isRunning}>
        {parts.slice(0, 20).map((part) => (
          <PartView key={part.id} part={part} />
        ))}
        {parts.length === 0 && isRunning && <p class="hint">Waiting for the model …</p>}
        {isReconnecting && <p class="hint">{reconnectingWords()}</p>}
        {document && <TurnFacts turn={document} />}
      </div>
    </div>
  );
}

async function createSession(agentId: string): Promise<string> {
  const path = "/v1/agents/{agent_id}/session";
  return (await post(path, { session_name: "First conversation" }, { params: { agent_id: agentId } })).session_id;
}

function readKept(agentId: string): KeptTurn | null {
  try {
    const kept = JSON.parse(sessionStorage.getItem(KEPT) ?? "null") as KeptTurn | null;
    return kept?.agent_id === agentId ? kept : null;
  } catch {
    return null;
  }
}

function keepTurn(turn: KeptTurn): void {
  try {
    sessionStorage.setItem(KEPT, JSON.stringify(turn));
  } catch {
    // The browser keeps nothing for this site: a reload shows an empty conversation.
  }
}
