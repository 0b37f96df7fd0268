import type { JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { addressOf, post } from "../../api";
import { Button } from "../../components/button";
import { CopyAs } from "../../components/copy";
import { Field } from "../../components/field";
import { Markdown } from "../../components/markdown-view";
import { ErrorState } from "../../components/states";
import { Step } from "../../components/step";
import { Money, Tokens } from "../../components/values";
import { type LiveTurn, TurnRunner } from "../../conversation";
import { type ApiError, toApiError } from "../../errors";
import { formatMilliseconds, toDate } from "../../format";
import type { Turn, TurnPlace } from "../../turns";
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
  const runner = useMemo(() => new TurnRunner(), []);
  const live = runner.state.value;
  useEffect(() => {
    const kept = readKept(agent.agent_id);
    if (kept) {
      setSession(kept.session_id);
      void runner.rejoin(kept, kept.turnId, kept.message);
    }
    return () => runner.close();
  }, []);
  useEffect(() => {
    if (live.turnId && session)
      keepTurn({ agent_id: agent.agent_id, session_id: session, turnId: live.turnId, message: live.message });
  }, [live.turnId, session]);
  useEffect(() => {
    if (live.turnId && live.message === message) setMessage("");
  }, [live.turnId]);
  useEffect(() => {
    if (live.turn?.status === "completed") onAnswer();
  }, [live.turn]);
  const submit = async (event: Event) => {
    event.preventDefault();
    setError(null);
    try {
      const at = { agent_id: agent.agent_id, session_id: session ?? (await createSession(agent.agent_id)) };
      setSession(at.session_id);
      await runner.start(at, message);
    } catch (failure) {
      setError(toApiError(failure));
    }
  };
  const follow = () => {
    if (live.turnId && session) {
      void runner.rejoin({ agent_id: agent.agent_id, session_id: session }, live.turnId, live.message);
    }
  };
  const params = { agent_id: agent.agent_id, session_id: session ?? "SESSION" };
  const url = addressOf("/v1/agents/{agent_id}/session/{session_id}/turn", params).href;
  const body = { messages: [{ role: "user", content: message || live.message }], stream: false };
  return (
    <div class="stack">
      <Exchange live={live} />
      <form class="stack" onSubmit={(event) => void submit(event)}>
        <Field label="Message">
          {(ids) => (
            <textarea
              {...ids}
              rows={2}
              placeholder="Write a message"
              value={message}
              onInput={(e) => setMessage(e.currentTarget.value)}
            />
          )}
        </Field>
        {error && <ErrorState error={error} />}
        {!error && live.error && <ErrorState error={live.error} {...(live.turnId && { onRetry: follow })} />}
        <div class="actions">
          <Button type="submit" kind="primary" busy={live.isRunning} disabled={!message.trim()}>
            Send
          </Button>
          {session && <CopyAs snippet={{ method: "POST", url, body }} />}
        </div>
      </form>
    </div>
  );
}

/** A message and its answer, as it arrives. */
function Exchange({ live }: { live: LiveTurn }): JSX.Element | null {
  if (!live.message) return null;
  const content = live.turn?.output_message?.content;
  const text = live.turn && typeof content === "string" ? content : live.text;
  return (
    <div class="exchange">
      <p class="message-of-user">{live.message}</p>
      <div class="message-of-agent" aria-live="polite" aria-busy={live.isRunning}>
        {text ? <Markdown text={text} /> : live.isRunning && <p class="hint">Waiting for the model …</p>}
        {live.isReconnecting && <p class="hint">The connection broke. Trying again …</p>}
        {live.turn && <TurnFacts turn={live.turn} />}
      </div>
    </div>
  );
}

function TurnFacts({ turn }: { turn: Turn }): JSX.Element {
  const took = turn.completed_at ? toDate(turn.completed_at).getTime() - toDate(turn.started_at).getTime() : null;
  return (
    <p class="facts-line hint">
      {took !== null && <span class="number">{formatMilliseconds(took)}</span>}
      {turn.usage && <Tokens count={turn.usage.total_tokens} />}
      {typeof turn.receipt?.dollars === "number" && <Money dollars={turn.receipt.dollars} />}
    </p>
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
