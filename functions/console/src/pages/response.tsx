/** A response: why it ended as it did, what it cost, its steps on one axis, and its items. */
import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { addressOf, get, type Schemas } from "../api";
import { CopyAs } from "../components/copy";
import { Id } from "../components/facts";
import { PageHead } from "../components/head";
import { usePaged } from "../components/list";
import { ErrorState, Skeleton } from "../components/states";
import { cut, formatTime } from "../format";
import { ItemPages } from "../read/item-pages";
import { useClock } from "../read/live-turn";
import { isRunning, useLiveResponse } from "../read/live-response";
import { ItemView, Some } from "../read/message-view";
import { ModelInputView } from "../read/model-input";
import { FailureCard, Notice, RunFacts } from "../read/outcome";
import { conversationPath, responsePath } from "../read/paths";
import { batchOf, scan } from "../read/scan";
import { type ResponseStep, SHORT, stepsOfResponse, type TimedStep } from "../read/steps";
import { Timeline } from "../read/timeline";
import { Link, type PageProps } from "../router";
import { Json } from "../components/json-view";

type Response = Schemas["Response"];
type Item = Readonly<Record<string, unknown>>;

const PATH = "/v1/responses/{response_id}";

export default function ResponsePage({ params }: PageProps): JSX.Element {
  const id = params["response"]!;
  const { response, steps, error, reload } = useLiveResponse(id);
  if (!response) return error ? <ErrorState error={error} onRetry={reload} /> : <Skeleton lines={10} />;
  const { previous_response_id: previous, conversation } = response;
  return (
    <div class="page page-wide">
      <PageHead title={`Response of ${formatTime(response.created_at)}`} above={[["/responses", "Responses"]]}>
        <Id id={id} of="the response" />
        {(previous || conversation) && (
          <p class="facts-line">
            {previous && <Link to={responsePath(previous)}>Previous response</Link>}
            {conversation && <Link to={conversationPath(conversation.id)}>Its conversation</Link>}
          </p>
        )}
      </PageHead>
      <Report response={response} steps={steps} />
      {error && <ErrorState error={error} onRetry={reload} />}
      <div class="actions">
        {!isRunning(response) && (
          <Link class="button button-secondary" to={`/responses/new?previous=${encodeURIComponent(id)}`}>
            Continue from this response
          </Link>
        )}
      </div>
      <Json value={response} label="Response">
        <CopyAs snippet={{ method: "GET", url: addressOf(PATH, { response_id: id }).href }} />
      </Json>
    </div>
  );
}

function Report({ response, steps }: { response: Response; steps: readonly ResponseStep[] }): JSX.Element {
  const runs = isRunning(response);
  const now = useClock(runs);
  const closed = runs ? null : response.completed_at ? response.completed_at * 1000 : null;
  const timed = useMemo(() => stepsOfResponse(steps, closed), [steps, closed]);
  const created = response.created_at * 1000;
  const start = Math.min(timed[0]?.start ?? created + 999, created + 999);
  const lastEnd = timed.at(-1)?.end ?? timed.at(-1)?.start ?? start;
  // Times of a response are in whole seconds, those of its steps are not.
  const end = runs ? now : timed.length > 0 ? lastEnd : Math.max(start, closed ?? start);
  const failed = response.error ? timed.find(({ error }) => error === response.error!.message) : undefined;
  const first = timed.find(({ firstTokenMs }) => firstTokenMs !== null);
  const reason = response.incomplete_details?.reason;
  return (
    <>
      {response.error && <FailureCard failure={response.error} step={failed ?? timed.at(-1)} start={start} />}
      {response.status === "incomplete" && (
        <Notice title={`It is incomplete: ${(reason ?? "").replaceAll("_", " ")}`} />
      )}
      {response.status === "cancelled" && <Notice title="The response was cancelled" />}
      <RunFacts
        status={response.status}
        startedAt={response.created_at}
        took={runs || timed.length === 0 ? null : end - start}
        firstTokenMs={first ? first.start - start + first.firstTokenMs! : null}
        model={response.model}
        usage={response.usage}
        receipt={response.receipt}
        steps={timed.length}
      />
      <section class="stack">
        <h2>Input</h2>
        <InputItems id={response.id} instructions={response.instructions ?? ""} />
      </section>
      <section class="stack">
        <h2>Steps {runs && <span class="badge badge-busy">followed live</span>}</h2>
        <Timeline steps={timed} start={start} end={end}>
          {(step) => <StepContent response={response} step={step} />}
        </Timeline>
      </section>
      <section class="stack">
        <h2>Output</h2>
        {(response.output ?? []).length === 0 && <p class="hint">Nothing{runs ? " yet" : ""}.</p>}
        <div class="messages">
          <Some items={response.output ?? []} noun="items">
            {(item, index) => <ItemView key={index} item={{ ...item }} />}
          </Some>
        </div>
      </section>
    </>
  );
}

function InputItems({ id, instructions }: { id: string; instructions: string }): JSX.Element {
  const load = useMemo(
    () =>
      scan<Item>(async (after, signal) => {
        const query = { after, limit: 20, order: "asc" } as const;
        const page = await get(`${PATH}/input_items`, { params: { response_id: id }, query, signal });
        return batchOf(page as { data: (Item & { id: string })[]; has_more?: boolean; last_id?: string });
      }),
    [id],
  );
  const paged = usePaged(load);
  return (
    <>
      {instructions && (
        <div class="messages">
          <ItemView item={{ type: "message", role: "system", content: instructions }} />
        </div>
      )}
      <ItemPages paged={paged} empty="There was no input." />
    </>
  );
}

function StepContent({ response, step }: { response: Response; step: TimedStep }): JSX.Element {
  const source = step.source as ResponseStep;
  const items: readonly Item[] = (response.output ?? []).map((item) => ({ ...item }));
  const added = items.filter(({ id }) => source.item_ids?.includes(String(id)));
  const call =
    step.kind === "tool"
      ? items.find(({ call_id, id }) => source.call_id && [call_id, id].includes(source.call_id))
      : undefined;
  const path = `/v1/responses/${encodeURIComponent(response.id)}/steps`;
  return (
    <>
      {step.error.length > SHORT && <p class="field-error state-text">{cut(step.error, 4000)}</p>}
      {call && !added.includes(call) && (
        <div class="labelled">
          <p class="hint">Input</p>
          <ItemView item={call} />
        </div>
      )}
      <div class="labelled">
        <p class="hint">Output</p>
        {added.length === 0 && <p class="hint">This step added nothing to the output.</p>}
        <Some items={added} noun="items">
          {(item, index) => <ItemView key={index} item={item} />}
        </Some>
      </div>
      {step.kind === "model" && <ModelInputView path={`${path}/${encodeURIComponent(step.id)}/input`} />}
      <Json value={source} label="Step">
        <CopyAs snippet={{ method: "GET", url: addressOf(path).href }} />
      </Json>
    </>
  );
}
