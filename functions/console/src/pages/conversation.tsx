/** A conversation and its items. */
import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { addressOf, get } from "../api";
import { Button } from "../components/button";
import { CopyAs } from "../components/copy";
import { Facts, Id } from "../components/facts";
import { PageHead } from "../components/head";
import { usePaged } from "../components/list";
import { ErrorState, Skeleton } from "../components/states";
import { Time } from "../components/values";
import { cut } from "../format";
import { ItemPages } from "../read/item-pages";
import { batchOf, PAGE_SIZE, scan } from "../read/scan";
import { useResource } from "../resource";
import { Link, type PageProps } from "../router";
import { inWords } from "../read/metadata";
import { Json } from "../components/json-view";

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
      <PageHead title="Conversation" above={[["/conversations", "Conversations"]]}>
        <Id id={id} of="the conversation" />
      </PageHead>
      <Facts
        rows={[
          ["Created", <Time at={conversation.created_at} />],
          ["Metadata", cut(inWords(conversation.metadata) || "none", 2000)],
        ]}
      />
      <div class="actions">
        <Link class="button button-secondary" to={`/responses/new?conversation=${encodeURIComponent(id)}`}>
          Continue this conversation
        </Link>
      </div>
      <section class="stack">
        <div class="section-head">
          <h2>Items</h2>
          <Button kind="quiet" onClick={() => setOrder(order === "desc" ? "asc" : "desc")}>
            {order === "desc" ? "Show the oldest first" : "Show the newest first"}
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
