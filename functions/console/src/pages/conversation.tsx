/** A conversation and its items. */
import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { addressOf, get } from "../api";
import { Button } from "../components/button";
import { CopyAs, CopyButton } from "../components/copy";
import { usePaged } from "../components/list";
import { ErrorState, Skeleton } from "../components/states";
import { Time } from "../components/values";
import { ItemPages } from "../read/item-pages";
import { Json } from "../read/message-view";
import { batchOf, PAGE_SIZE, scan } from "../read/scan";
import { useResource } from "../resource";
import { Link, type PageProps } from "../router";
import { cut } from "../talk/part-view";
import { inWords } from "../read/metadata";

type Item = Readonly<Record<string, unknown>>;

const PATH = "/v1/conversations/{conversation_id}";

export default function ConversationPage({ params }: PageProps): JSX.Element {
  const id = params["conversation"]!;
  const [order, setOrder] = useState<"asc" | "desc">("desc");
  const loadOne = useMemo(() => (signal: AbortSignal) => get(PATH, { params: { conversation_id: id }, signal }), [id]);
  const { value: conversation, error, reload } = useResource(loadOne);
  const load = useMemo(
    () =>
      scan<Item>(async (after, signal) => {
        const query = { after, limit: PAGE_SIZE, order };
        const page = await get(`${PATH}/items`, { params: { conversation_id: id }, query, signal });
        return batchOf(page as { data: (Item & { id: string })[]; has_more?: boolean; last_id?: string });
      }),
    [id, order],
  );
  const paged = usePaged(load);
  if (!conversation) return error ? <ErrorState error={error} onRetry={reload} /> : <Skeleton lines={8} />;
  return (
    <div class="page page-wide">
      <header class="page-head">
        <p class="hint">
          <Link to="/conversations">Conversations</Link>
        </p>
        <h1>Conversation</h1>
        <p class="with-action hint">
          <code>{id}</code>
          <CopyButton text={id} what="id of the conversation" />
        </p>
      </header>
      <dl class="facts">
        <dt>Made</dt>
        <dd>
          <Time at={conversation.created_at} />
        </dd>
        <dt>Metadata</dt>
        <dd>{cut(inWords(conversation.metadata) || "none", 2000)}</dd>
      </dl>
      <div class="actions">
        <Link class="button button-secondary" to={`/responses/new?conversation=${encodeURIComponent(id)}`}>
          Continue this conversation
        </Link>
      </div>
      <section class="stack">
        <div class="page-head-row">
          <h2>Items</h2>
          <Button kind="quiet" onClick={() => setOrder(order === "desc" ? "asc" : "desc")}>
            {order === "desc" ? "Newest first" : "Oldest first"}
          </Button>
        </div>
        <ItemPages paged={paged} empty="There are no items yet" />
      </section>
      <Json value={conversation} label="Conversation">
        <CopyAs snippet={{ method: "GET", url: addressOf(`${PATH}/items`, { conversation_id: id }).href }} />
      </Json>
    </div>
  );
}
