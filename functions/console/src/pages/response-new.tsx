/** Responses, one after the other. */
import type { JSX } from "preact";
import { useCallback, useMemo, useRef, useState } from "preact/hooks";
import { get, post } from "../api";
import { Button } from "../components/button";
import { PageHead } from "../components/head";
import { EmptyState, ErrorState, Skeleton } from "../components/states";
import { WindowList } from "../components/window-list";
import { type ApiError, toApiError } from "../errors";
import { formatTime } from "../format";
import { readModelNames } from "../models";
import { useResource } from "../resource";
import { navigate, place } from "../router";
import { BusyField, type WhenBusy } from "../talk/busy-field";
import { ComposerForm, type Message, useComposer } from "../talk/composer";
import { useFollowEnd } from "../talk/follow-end";
import { ResponseChain, type UnsentResponse } from "../talk/response-chain";
import { NEW_CONVERSATION, type OfferedToResponses, ResponseFields } from "../talk/response-fields";
import { inputOf, type ResponseBody, type ResponseRun } from "../talk/response-run";
import { type Pending, ResponseView } from "../talk/response-view";
import { newId, type Sent } from "../talk/run";
import { StopButton } from "../talk/run-view";
import { SettingsJson } from "../talk/setting-fields";
import { textAt, useSettings, type Values } from "../talk/settings";
import { useRuns } from "../talk/use-runs";
import { sentFrom } from "../talk/turn-run";

/** The parameter with the response that the page shows, so that a reload shows it again. */
const SHOWN = "response";
/** The parameter with the vector store that is searched, which stays for a reload. */
const STORE = "store";

export default function ResponsePage(): JSX.Element {
  const chain = useMemo(() => new ResponseChain(), []);
  const load = useCallback(async (signal: AbortSignal) => {
    const shown = place.peek().query.get(SHOWN);
    const before = shown && chain.runs.peek().length === 0 ? chain.loadBefore(shown) : null;
    return (await Promise.all([readOffered(signal), before]))[0];
  }, []);
  const { value: offered, error, reload } = useResource(load);
  useRuns(chain);
  return (
    <div class="page page-wide talk-wide">
      <PageHead title="New response" lead="Ask a model, with the tools and the context of your choice." />
      {error && <ErrorState error={error} onRetry={reload} />}
      {!error && !offered && <Skeleton lines={8} />}
      {offered && <ResponseTalk offered={offered} chain={chain} />}
    </div>
  );
}

async function readOffered(signal: AbortSignal): Promise<OfferedToResponses> {
  const [models, stores, conversations] = await Promise.all([
    readModelNames(signal),
    get("/v1/vector_stores", { query: { limit: 100 }, signal }),
    get("/v1/conversations", { query: { limit: 50, order: "desc" }, signal }),
  ]);
  return {
    models,
    stores: stores.data.map(({ id, name }) => [id, name || id] as const),
    conversations: conversations.data.map(({ id, created_at }) => [id, `${id}, ${formatTime(created_at)}`] as const),
  };
}

function initialSettings({ models }: OfferedToResponses): Values {
  const { query } = place.peek();
  const previous = query.get("previous");
  const conversation = query.get("conversation");
  const store = query.get(STORE);
  return {
    model: models[0] ?? "",
    ...(store && { tools: [{ type: "file_search", vector_store_ids: [store] }] }),
    ...(previous && { previous_response_id: previous }),
    ...(conversation && { conversation }),
  };
}

/** What is shown only if it is asked for. */
const INCLUDE = [
  "file_search_call.results",
  "code_interpreter_call.outputs",
  "web_search_call.action.sources",
] as const;

function ResponseTalk({ offered, chain }: { offered: OfferedToResponses; chain: ResponseChain }): JSX.Element {
  const initial = useMemo(() => initialSettings(offered), []);
  const store = useMemo(() => place.peek().query.get(STORE) ?? "", []);
  const settings = useSettings(
    `response.${textAt(initial, "previous_response_id")}${textAt(initial, "conversation")}${store}`,
    initial,
  );
  const composer = useComposer("response");
  const [whenBusy, setWhenBusy] = useState<WhenBusy | "">("");
  const [unsent, setUnsent] = useState<(UnsentResponse & { message: Message | null }) | null>(null);
  const [failure, setFailure] = useState<ApiError | null>(null);
  const [isOpen, setOpen] = useState(chain.runs.peek().length === 0);
  const transcript = useRef<HTMLDivElement>(null);
  const goToEnd = useFollowEnd(transcript, chain.runs.peek().length > 0);
  const runs = chain.runs.value;
  const states = runs.map((run) => run.state.value);
  const running = runs.filter((_, index) => states[index]!.phase === "running");
  const conversation = textAt(settings.values, "conversation");
  const first = states[0]?.document?.previous_response_id;

  const deliver = async (body: ResponseBody, sent: readonly Sent[], key: string, message: Message | null) => {
    setUnsent(null);
    setFailure(null);
    goToEnd();
    const lost = await chain.send(body, sent, key, (id) => {
      composer.arrived();
      const query = new URLSearchParams({ [SHOWN]: id, ...(store && { [STORE]: store }) });
      navigate(`/responses/new?${query}`, { replace: true });
      if (!body.conversation && body.store !== false) settings.set("previous_response_id", id);
    });
    if (lost && message) composer.restore(message);
    if (lost) setUnsent({ ...lost, message });
  };
  const requestOf = async (input: ResponseBody["input"]): Promise<ResponseBody> => {
    const body = { include: INCLUDE, ...settings.values, input } as unknown as ResponseBody;
    if (conversation === NEW_CONVERSATION) {
      const { id } = await post("/v1/conversations", {});
      settings.set("conversation", id);
      body.conversation = id;
    }
    if (body.conversation) delete body.previous_response_id;
    return body;
  };
  const send = async (message: Message) => {
    composer.hide(message);
    const isSame = unsent?.message?.text === message.text && unsent.message.attachments === message.attachments;
    if (isSame && unsent.error.status === 0) return deliver(unsent.body, [sentFrom(message)], unsent.key, message);
    try {
      const body = await requestOf(inputOf(message));
      const busy = whenBusy && body.conversation ? { when_busy: whenBusy } : {};
      await deliver({ ...body, ...busy }, [sentFrom(message)], newId(), message);
    } catch (error) {
      composer.restore(message);
      setFailure(toApiError(error));
    }
  };
  const answer = async (run: ResponseRun, { input, sent }: Pending) => {
    const body = await requestOf(input);
    if (!body.conversation) body.previous_response_id = run.latest.id;
    await deliver(body, sent, newId(), null);
  };
  const stop = async () => {
    for (const run of running) setFailure(await chain.cancel(run));
  };
  const loadBefore = (id: string) => chain.loadBefore(id).catch((error: unknown) => setFailure(toApiError(error)));
  return (
    <>
      <details class="part wide" open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>
          <span class="part-label">Settings</span>
          <span class="part-line">{textAt(settings.values, "model")}</span>
        </summary>
        {isOpen && (
          <div class="part-body two-sides">
            <ResponseFields settings={settings} problems={unsent?.error.fields ?? []} offered={offered} />
            <SettingsJson settings={settings} label="JSON of the request" />
          </div>
        )}
      </details>
      <div ref={transcript} class="stack">
        {first && (
          <Button kind="quiet" onClick={() => void loadBefore(first)}>
            Show the previous response
          </Button>
        )}
        {runs.length === 0 && (
          <EmptyState title="Nothing has been asked yet">Write the first message below.</EmptyState>
        )}
        <WindowList items={runs} keyOf={(run) => run.key} noun="responses" class="runs" size={20}>
          {(run) => (
            <ResponseView
              chain={chain}
              run={run}
              isLast={run === runs.at(-1)}
              onAnswer={(pending) => void answer(run, pending)}
              onSendAgain={(body) => void deliver(body, run.sent.peek(), newId(), null)}
            />
          )}
        </WindowList>
      </div>
      <ComposerForm
        composer={composer}
        label="Next message"
        blocked={
          running.length > 0 && !conversation ? "The next message can be sent when this response has ended." : undefined
        }
        onSend={(message) => void send(message)}
        error={unsent?.error ?? failure}
        onRetry={
          unsent
            ? () => void (unsent.message ? send(unsent.message) : deliver(unsent.body, [], newId(), null))
            : undefined
        }
        actions={
          running.length > 0 && (
            <StopButton isStopping={states.some((each) => each.isStopping)} onStop={() => void stop()} />
          )
        }
      >
        {conversation && <BusyField value={whenBusy} onChange={setWhenBusy} />}
        {settings.problem && <p class="field-error">The settings are not JSON. The last valid ones are sent.</p>}
      </ComposerForm>
    </>
  );
}
