/** Continue from a turn in a new session. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { get, post } from "../api";
import { Button } from "../components/button";
import { Dialog } from "../components/dialog";
import { Field } from "../components/field";
import { ErrorState } from "../components/states";
import { toast } from "../components/toast";
import { type ApiError, toApiError } from "../errors";
import { formatCount } from "../format";
import { navigate } from "../router";
import { startTurn, type Turn, type TurnPlace } from "../turns";
import { API_SESSION, sessionPath } from "./paths";
import { textOf } from "./steps";

/** So many characters of the turns are carried on; older ones are left out. */
const MOST = 100_000;
const MOST_TURNS = 100;

export function ContinueButton({ at, turn }: { at: TurnPlace; turn: Turn }): JSX.Element {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <Button onClick={() => setOpen(true)}>Continue in a new session</Button>
      <Dialog title="Continue in a new session" isOpen={isOpen} onClose={() => setOpen(false)}>
        <ContinueForm at={at} turn={turn} onClose={() => setOpen(false)} />
      </Dialog>
    </>
  );
}

function ContinueForm({ at, turn, onClose }: { at: TurnPlace; turn: Turn; onClose: () => void }): JSX.Element {
  const [message, setMessage] = useState("");
  const [error, setError] = useState<ApiError | null>(null);
  const [isBusy, setBusy] = useState(false);
  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    setError(null);
    try {
      await continueIn(at, turn, message);
    } catch (failure) {
      setError(toApiError(failure));
      setBusy(false);
    }
  };
  return (
    <form class="stack" onSubmit={(event) => void submit(event)}>
      <p class="state-text">
        The API copies no turns. The first message of the new session has the text of the turns up to this one (at most
        {formatCount(MOST)} characters, the last ones), so that the model knows what was said and what tools returned.
        This session does not change.
      </p>
      <Field label="Your message" hint="It follows the text of the turns.">
        {(ids) => (
          <textarea {...ids} rows={3} value={message} onInput={(event) => setMessage(event.currentTarget.value)} />
        )}
      </Field>
      {error && <ErrorState error={error} />}
      <div class="actions">
        <Button type="submit" kind="primary" busy={isBusy} disabled={!message.trim()}>
          Continue
        </Button>
        <Button onClick={onClose}>Close</Button>
      </div>
    </form>
  );
}

async function continueIn(at: TurnPlace, turn: Turn, message: string): Promise<void> {
  const { text, omitted } = await readTranscript(at, turn);
  const params = { agent_id: at.agent_id };
  const session_name = `From the turn ${turn.turn_id}`;
  const { session_id } = await post("/v1/agents/{agent_id}/session", { session_name }, { params });
  const place = { agent_id: at.agent_id, session_id };
  const messages = [text, message].map((content) => ({ role: "user" as const, content, context: null }));
  // The turn goes on when its reader leaves. The page of the session follows it.
  for await (const payload of startTurn(place, { messages })) if (payload.event_type === "turn_start") break;
  if (omitted > 0) toast(`${formatCount(omitted)} older turns were left out, because they are too long.`);
  navigate(sessionPath(at.agent_id, session_id));
}

/** Return the text of the turns up to one of them, as far as it is not too long. */
async function readTranscript(at: TurnPlace, turn: Turn): Promise<{ text: string; omitted: number }> {
  const texts = [transcriptOf(turn).slice(-MOST)];
  let length = texts[0]!.length;
  let omitted = 0;
  let after = turn.turn_id;
  for (let more = true; more;) {
    const page = await get(`${API_SESSION}/turns`, { params: { ...at }, query: { after, limit: 20, order: "desc" } });
    for (const earlier of page.data) {
      const text = transcriptOf(earlier);
      if (omitted > 0 || length + text.length > MOST || texts.length >= MOST_TURNS) omitted += 1;
      else texts.push(text);
      length += text.length;
    }
    after = page.data.at(-1)?.turn_id ?? "";
    more = page.has_more && page.data.length > 0 && omitted === 0;
  }
  const intro = "This conversation continues an earlier one. What was said there, as text:";
  return { text: `${intro}\n\n${texts.reverse().join("\n\n")}\n\nEnd of the earlier conversation.`, omitted };
}

function transcriptOf(turn: Turn): string {
  const lines = turn.input_messages.map((message) => `User: ${textOf(message.content)}`);
  for (const step of turn.steps) {
    if (step.step_type === "tool_execution") {
      for (const { tool_name, content } of step.tool_responses)
        lines.push(`Result of ${tool_name}: ${textOf(content)}`);
    } else if (step.step_type === "inference") {
      const { content, tool_calls = [] } = step.model_response;
      if (textOf(content)) lines.push(`Assistant: ${textOf(content)}`);
      for (const { tool_name, arguments: given, arguments_json } of tool_calls)
        lines.push(`Assistant calls ${tool_name}: ${arguments_json ?? JSON.stringify(given)}`);
    }
  }
  return lines.join("\n");
}
