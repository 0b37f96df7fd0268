/** A session of an agent: its turns, and the next message. */
import type { JSX } from "preact";
import { useCallback, useMemo, useRef, useState } from "preact/hooks";
import { get, type Schemas } from "../api";
import { PageHead } from "../components/head";
import { EmptyState, ErrorState, Skeleton } from "../components/states";
import { Time } from "../components/values";
import { WindowList } from "../components/window-list";
import type { ApiError } from "../errors";
import { cut } from "../format";
import { Origin } from "../read/continue";
import { NO_TURN } from "../read/ids";
import { API_SESSION } from "../read/paths";
import { useResource } from "../resource";
import { fillPath, type PageProps } from "../router";
import { BusyField, type WhenBusy } from "../talk/busy-field";
import { ComposerForm, type Message, useComposer } from "../talk/composer";
import { Conversation, loadTurns, type Sending, type TurnPage, type Unsent } from "../talk/conversation";
import { useFollowEnd } from "../talk/follow-end";
import { newId } from "../talk/run";
import { StopButton } from "../talk/run-view";
import { bodyOf, type TurnBody, type TurnRun } from "../talk/turn-run";
import { useRuns } from "../talk/use-runs";
import { TurnView } from "../talk/turn-view";

interface Loaded {
  agent: Schemas["Agent"];
  session: Schemas["Session"];
  /** The newest turns, in the order of their creation. */
  turns: TurnPage;
}

export default function SessionPage({ params }: PageProps): JSX.Element {
  const at = { agent_id: params["agent"]!, session_id: params["session"]! };
  const load = useCallback(async (signal: AbortSignal): Promise<Loaded> => {
    const [agent, session, turns] = await Promise.all([
      get("/v1/agents/{agent_id}", { params: { agent_id: at.agent_id }, signal }),
      get(API_SESSION, { params: at, query: { turn_ids: [NO_TURN] }, signal }),
      loadTurns(at),
    ]);
    return { agent, session, turns };
  }, []);
  const { value: loaded, error, reload } = useResource(load);
  if (error) return <ErrorState error={error} onRetry={reload} />;
  if (!loaded) return <Skeleton lines={8} />;
  return <SessionTalk {...loaded} />;
}

function SessionTalk({ agent, session, turns }: Loaded): JSX.Element {
  const { agent_id, agent_config: settings } = agent;
  const talk = useMemo(() => new Conversation({ agent_id, session_id: session.session_id }, turns), []);
  useRuns(talk);
  const composer = useComposer(`session.${session.session_id}`);
  const [whenBusy, setWhenBusy] = useState<WhenBusy | "">("");
  const [unsent, setUnsent] = useState<Unsent | null>(null);
  const [stopError, setStopError] = useState<ApiError | null>(null);
  const transcript = useRef<HTMLDivElement>(null);
  const goToEnd = useFollowEnd(transcript, talk.runs.peek().length > 0);
  const runs = talk.runs.value;
  const states = runs.map((run) => run.state.value);
  const running = runs.filter((_, index) => states[index]!.phase === "running");

  const deliver = async (sending: Sending) => {
    setUnsent(null);
    setStopError(null);
    goToEnd();
    const lost = await talk.send(sending, composer.arrived);
    if (lost) composer.restore(lost.message);
    setUnsent(lost);
  };
  const send = (message: Message) => {
    const isSame = unsent?.message.text === message.text && unsent.message.attachments === message.attachments;
    const body = isSame ? unsent.body : bodyOf(message);
    // A message that may have arrived has the key of before, so that it does not run twice.
    const isUnknown = isSame && unsent.error.status === 0;
    const chosen = whenBusy && !isUnknown ? { when_busy: whenBusy } : {};
    composer.hide(message);
    void deliver({ message, body: { ...body, ...chosen }, key: isUnknown ? unsent.key : newId() });
  };
  const sendAgain = (run: TurnRun, body: TurnBody) =>
    void deliver({ message: { text: run.sent.peek()[0]?.text ?? "", attachments: [] }, body, key: newId() });
  const stop = async () => {
    for (const run of running) setStopError(await talk.cancel(run));
  };
  return (
    <div class="page talk">
      <PageHead
        title={session.session_name}
        above={[
          ["/agents", "Agents"],
          [fillPath("/agents/:agent", { agent: agent_id }), cut(settings.name || "Agent without a name", 80)],
        ]}
      >
        <p class="hint">
          <span class="mono">{settings.model}</span> · Started <Time at={session.started_at} />
        </p>
        <Origin agentId={agent_id} session={session} />
      </PageHead>
      <div ref={transcript} class="stack">
        {runs.length === 0 && <EmptyState title="Nothing has been said yet">Write the first message below.</EmptyState>}
        <WindowList
          items={runs}
          keyOf={(run) => run.key}
          noun="turns"
          class="runs"
          size={20}
          onEarlier={talk.hasEarlier.value ? () => talk.loadEarlier().then(setStopError) : undefined}
        >
          {(run) => <TurnView talk={talk} run={run} tools={settings.client_tools ?? []} onSendAgain={sendAgain} />}
        </WindowList>
      </div>
      <ComposerForm
        composer={composer}
        label="Next message"
        onSend={send}
        error={unsent?.error ?? stopError}
        onRetry={unsent ? () => send(unsent.message) : undefined}
        actions={
          running.length > 0 && (
            <StopButton isStopping={states.some((each) => each.isStopping)} onStop={() => void stop()} />
          )
        }
      >
        <BusyField value={whenBusy} inherited={settings.when_busy} onChange={setWhenBusy} />
        {states.some((each) => each.document?.status === "awaiting_input") && (
          <p class="hint">A new message cancels the calls that are waiting for you.</p>
        )}
      </ComposerForm>
    </div>
  );
}
