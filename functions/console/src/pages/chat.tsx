/** A stored chat: the messages of its request, and its answers. */
import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { addressOf, get } from "../api";
import { CopyAs } from "../components/copy";
import { Facts, Id } from "../components/facts";
import { PageHead } from "../components/head";
import { usePaged } from "../components/list";
import { ErrorState, Skeleton } from "../components/states";
import { Time } from "../components/values";
import { cut, formatCount, formatTime } from "../format";
import { ItemPages } from "../read/item-pages";
import { MessageView, Some } from "../read/message-view";
import { inWords } from "../read/metadata";
import { batchOf, PAGE_SIZE, scan } from "../read/scan";
import { useResource } from "../resource";
import type { PageProps } from "../router";
import { Json } from "../components/json-view";

type Item = Readonly<Record<string, unknown>>;

const PATH = "/v1/chat/completions/{completion_id}";

export default function ChatPage({ params }: PageProps): JSX.Element {
  const id = params["chat"]!;
  const loadOne = useMemo(() => (signal: AbortSignal) => get(PATH, { params: { completion_id: id }, signal }), [id]);
  const { value: chat, error, reload } = useResource(loadOne);
  const load = useMemo(
    () =>
      scan<Item>(async (after, signal) => {
        const query = { after, limit: PAGE_SIZE, order: "asc" } as const;
        const page = await get(`${PATH}/messages`, { params: { completion_id: id }, query, signal });
        return batchOf(page as unknown as { data: (Item & { id: string })[]; has_more?: boolean; last_id?: string });
      }),
    [id],
  );
  const paged = usePaged(load);
  if (!chat) return error ? <ErrorState error={error} onRetry={reload} /> : <Skeleton lines={8} />;
  const { usage } = chat;
  return (
    <div class="page page-wide">
      <PageHead title={`Chat of ${formatTime(chat.created)}`} above={[["/chats", "Stored chats"]]}>
        <Id id={id} of="the chat" />
      </PageHead>
      <Facts
        rows={[
          ["Created", <Time at={chat.created} />],
          ["Model", <span class="mono">{cut(chat.model, 200)}</span>],
          [
            "Tokens",
            usage
              ? `${formatCount(usage.total_tokens)}: ${formatCount(usage.prompt_tokens)} in, ${formatCount(usage.completion_tokens)} out`
              : "not counted",
          ],
          ["Metadata", cut(inWords(chat.metadata) || "none", 2000)],
        ]}
      />
      <section class="stack">
        <h2>Messages</h2>
        <ItemPages paged={paged} empty="The request had no messages" />
      </section>
      <section class="stack">
        <h2>{chat.choices.length === 1 ? "Answer" : "Answers"}</h2>
        <div class="messages">
          <Some items={chat.choices} noun="answers">
            {({ message, finish_reason }, index) => (
              <MessageView
                key={index}
                message={{ ...message }}
                marks={finish_reason === "stop" ? [] : [`ended by ${finish_reason.replaceAll("_", " ")}`]}
              />
            )}
          </Some>
        </div>
      </section>
      <Json value={chat} label="Chat">
        <CopyAs snippet={{ method: "GET", url: addressOf(PATH, { completion_id: id }).href }} />
      </Json>
    </div>
  );
}
