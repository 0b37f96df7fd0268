/** Conversations, newest first. */
import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { addressOf, get, type Schemas } from "../api";
import { CopyAs } from "../components/copy";
import { Finder, useFilters } from "../components/finder";
import { PageHead } from "../components/head";
import { Table, usePaged } from "../components/list";
import { EmptyState } from "../components/states";
import { Time } from "../components/values";
import { cut } from "../format";
import { inWords } from "../read/metadata";
import { conversationPath } from "../read/paths";
import { batchOf, contains, findOne, PAGE_SIZE, scan } from "../read/scan";
import { Link } from "../router";

type Conversation = Schemas["Conversation"];

export default function ConversationsPage(): JSX.Element {
  const { text } = useFilters();
  const load = useMemo(() => loaderOf(text), [text]);
  const paged = usePaged(load);
  return (
    <div class="page page-wide">
      <PageHead title="Conversations" />
      <Finder filters={{ text, status: "" }} label="Words of the metadata, or id" />
      <Table
        caption="Conversations"
        paged={paged}
        keyOf={({ id }) => id}
        empty={
          text ? (
            <EmptyState title="No conversation matches" />
          ) : (
            <EmptyState title="There are no conversations yet">
              <Link to="/responses/new">Begin one with a response</Link>
            </EmptyState>
          )
        }
        columns={[
          { title: "Id", cell: ({ id }) => <Link to={conversationPath(id)}>{id}</Link> },
          { title: "Metadata", cell: ({ metadata }) => cut(inWords(metadata) || "none", 300) },
          { title: "Created", cell: ({ created_at }) => <Time at={created_at} /> },
          { title: "Expires", cell: ({ expires_at }) => (expires_at ? <Time at={expires_at} /> : "never") },
        ]}
      />
      <CopyAs snippet={{ method: "GET", url: addressOf("/v1/conversations", {}, { order: "desc" }).href }} />
    </div>
  );
}

function loaderOf(text: string) {
  if (/^conv_\w+$/.test(text)) {
    const params = { conversation_id: text };
    return findOne<Conversation>((signal) => get("/v1/conversations/{conversation_id}", { params, signal }));
  }
  return scan<Conversation>(
    async (after, signal) =>
      batchOf(await get("/v1/conversations", { query: { after, limit: PAGE_SIZE, order: "desc" }, signal })),
    ({ metadata }) => contains(text, inWords(metadata)),
  );
}
