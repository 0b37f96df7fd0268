/** A turn: why it ended as it did, what it cost, and its steps on one axis. */
import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { addressOf, get } from "../api";
import { Button } from "../components/button";
import { CopyAs } from "../components/copy";
import { Id } from "../components/facts";
import { PageHead } from "../components/head";
import { ErrorState, Skeleton } from "../components/states";
import { cut, formatTime } from "../format";
import { ContinueButton } from "../read/continue";
import { useClock, useLiveTurn } from "../read/live-turn";
import { MessageView, Some } from "../read/message-view";
import { FailureCard, Notice, RunFacts } from "../read/outcome";
import { API_TURN, sessionPath, turnsPath } from "../read/paths";
import { stepsOfTurn, type TimedStep, timeOf } from "../read/steps";
import { Timeline } from "../read/timeline";
import { TurnStepView } from "../read/turn-step";
import { useResource } from "../resource";
import { fillPath, Link, type PageProps } from "../router";
import type { Turn, TurnPlace } from "../turns";
import { Json } from "../components/json-view";

export default function TurnPage({ params }: PageProps): JSX.Element {
  const at = { agent_id: params["agent"]!, session_id: params["session"]! };
  const live = useLiveTurn(at, params["turn"]!);
  const loadAgent = useMemo(
    () => (signal: AbortSignal) => get("/v1/agents/{agent_id}", { params: { agent_id: at.agent_id }, signal }),
    [at.agent_id],
  );
  const agent = useResource(loadAgent);
  const config = agent.value?.agent_config;
  const { turn, error, reload } = live;
  if (!turn) return error ? <ErrorState error={error} onRetry={reload} /> : <Skeleton lines={10} />;
  // Which steps are waits depends on the agent, so that nothing moves when it arrives.
  if (agent.isLoading && !agent.value) return <Skeleton lines={10} />;
  const clientTools = new Set((config?.client_tools ?? []).map(({ name }) => name));
  return (
    <div class="page page-wide">
      <PageHead
        title={`Turn of ${formatTime(turn.started_at)}`}
        above={[
          ["/agents", "Agents"],
          [fillPath("/agents/:agent", { agent: at.agent_id }), cut(config?.name || "Agent", 80)],
          [turnsPath(at.agent_id, at.session_id), "Turns of the session"],
        ]}
      >
        <Id id={turn.turn_id} of="the turn" />
      </PageHead>
      <TurnReport at={at} live={live} clientTools={clientTools} model={config?.model ?? null} />
      {error && <ErrorState error={error} onRetry={reload} />}
      <div class="actions">
        <Link class="button button-secondary" to={sessionPath(at.agent_id, at.session_id)}>
          Open the session
        </Link>
        {hasEnded(turn) && <ContinueButton key={turn.turn_id} at={at} turnId={turn.turn_id} />}
        {turn.status === "in_progress" && !live.isFollowed && <Button onClick={reload}>Refresh</Button>}
      </div>
      <Json value={turn} label="Turn">
        <CopyAs snippet={{ method: "GET", url: addressOf(API_TURN, { ...at, turn_id: turn.turn_id }).href }} />
      </Json>
    </div>
  );
}

const hasEnded = ({ status }: Turn) => status !== "in_progress" && status !== "awaiting_input";

interface ReportProps {
  at: TurnPlace;
  live: ReturnType<typeof useLiveTurn>;
  clientTools: ReadonlySet<string>;
  model: string | null;
}

function TurnReport({ at, live, clientTools, model }: ReportProps): JSX.Element {
  const turn = live.turn!;
  const isRunning = turn.status === "in_progress";
  const now = useClock(isRunning);
  const ended = useMemo(() => stepsOfTurn(turn, clientTools), [turn, clientTools.size]);
  const { running } = live;
  const steps: readonly TimedStep[] = running ? [...ended, runningStep(running)] : ended;
  const start = timeOf(turn.started_at);
  const end = isRunning ? now : lastMoment(turn, ended, start);
  const failed = turn.error ? steps.find(({ id }) => id === turn.unfinished_step?.step_id) : undefined;
  const found = steps.filter(({ error }) => error);
  return (
    <>
      {turn.error && <FailureCard failure={turn.error} step={failed} start={start} />}
      {turn.status === "cancelled" && !turn.error && <Notice title="The turn was cancelled" />}
      {turn.status === "awaiting_input" && (
        <Notice title="The turn waits for its client">
          <p class="state-text">
            It goes on when these calls are answered: {cut(steps.at(-1)?.name.replace(/^for /, "") ?? "", 300)}.{" "}
            <Link to={sessionPath(at.agent_id, at.session_id)}>Answer them in the session</Link>
          </p>
        </Notice>
      )}
      {!turn.error && found.length > 0 && (
        <Notice title={`${found.length === 1 ? "One step" : `${found.length} steps`} failed, and the turn went on`}>
          <p class="state-text">{cut(found[0]!.error, 500)}</p>
        </Notice>
      )}
      <RunFacts
        status={turn.status}
        startedAt={turn.started_at}
        took={isRunning ? null : end - start}
        firstTokenMs={firstToken(steps, start)}
        model={model}
        usage={turn.usage}
        receipt={turn.receipt}
        steps={steps.length}
      />
      <section class="stack">
        <h2>Input</h2>
        <div class="messages">
          <Some items={turn.input_messages} noun="messages">
            {(message, index) => <MessageView key={index} message={{ ...message }} />}
          </Some>
        </div>
      </section>
      <section class="stack">
        <h2>
          Steps {isRunning && <span class="badge badge-busy">{live.isFollowed ? "followed live" : "running"}</span>}
        </h2>
        <Timeline steps={steps} start={start} end={end}>
          {(step) => <TurnStepView at={at} turn={turn} step={step} />}
        </Timeline>
        {running?.text && <p class="live-text state-text">{running.text}</p>}
      </section>
      {!isRunning && turn.status !== "awaiting_input" && turn.output_message.content && (
        <section class="stack">
          <h2>Output</h2>
          <div class="messages">
            <MessageView message={{ ...turn.output_message }} />
          </div>
        </section>
      )}
    </>
  );
}

function runningStep({ id, type, start }: { id: string; type: string; start: number }): TimedStep {
  const kind = type === "tool_execution" ? "tool" : type === "shield_call" ? "shield" : "model";
  return { id, kind, name: "", start, end: null, firstTokenMs: null, usage: null, error: "", source: null };
}

function lastMoment(turn: Turn, steps: readonly TimedStep[], start: number): number {
  return Math.max(start, turn.completed_at ? timeOf(turn.completed_at) : 0, ...lastEnds(steps));
}

function lastEnds(steps: readonly TimedStep[]): number[] {
  return steps.slice(-3).map(({ start, end }) => end ?? start);
}

/** Return the milliseconds from the beginning of a turn to the first token of its model. */
function firstToken(steps: readonly TimedStep[], start: number): number | null {
  const first = steps.find(({ firstTokenMs }) => firstTokenMs !== null);
  return first ? Math.max(0, first.start - start) + first.firstTokenMs! : null;
}
