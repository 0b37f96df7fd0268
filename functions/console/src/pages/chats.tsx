/** Stored chats, newest first. */
import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { addressOf, get, type Schemas } from "../api";
import { CopyAs } from "../components/copy";
import { Finder, useFilters } from "../components/finder";
import { PageHead } from "../components/head";
import { Table, usePaged } from "../components/list";
import { EmptyState } from "../components/states";
import { Time } from "../components/values";
import { cut, formatCount } from "../format";
import { inWords } from "../read/metadata";
import { chatPath } from "../read/paths";
import { batchOf, contains, findOne, PAGE_SIZE, scan } from "../read/scan";
import { Link } from "../router";

type Chat = Schemas["ChatCompletion"];

export default function ChatsPage(): JSX.Element {
  const { text } = useFilters();
  const load = useMemo(() => loaderOf(text), [text]);
  const paged = usePaged(load);
  return (
    <div class="page page-wide">
      <PageHead title="Stored chats" lead="Chat completions of requests with store: true." />
      <Finder filters={{ text, status: "" }} label="Words, model or id" />
      <Table
        caption="Stored chats"
        paged={paged}
        keyOf={({ id }) => id}
        empty={
          text ? (
            <EmptyState title="No chat matches" />
          ) : (
            <EmptyState title="There are no stored chats yet">
              <p>This request makes one:</p>
              <CopyAs snippet={SAMPLE()} />
            </EmptyState>
          )
        }
        columns={[
          {
            title: "Answer",
            cell: (chat) => <Link to={chatPath(chat.id)}>{cut(answerOf(chat) || chat.id, 120)}</Link>,
          },
          { title: "Model", cell: ({ model }) => <code>{cut(model, 100)}</code> },
          { title: "Created", cell: ({ created }) => <Time at={created} /> },
          { title: "Ended by", cell: ({ choices }) => (choices[0]?.finish_reason ?? "–").replaceAll("_", " ") },
          {
            title: "Tokens",
            isNumber: true,
            cell: ({ usage }) => (usage ? formatCount(usage.total_tokens) : "–"),
          },
        ]}
      />
      <CopyAs snippet={{ method: "GET", url: addressOf("/v1/chat/completions", {}, { order: "desc" }).href }} />
    </div>
  );
}

const SAMPLE = () => ({
  method: "POST",
  url: addressOf("/v1/chat/completions").href,
  body: { model: "scripted/demo", messages: [{ role: "user", content: "Hello" }], store: true },
});

function answerOf({ choices }: Chat): string {
  return choices[0]?.message.content?.trim() ?? "";
}

function loaderOf(text: string) {
  if (/^chatcmpl[_-]\w+$/.test(text)) {
    const params = { completion_id: text };
    return findOne<Chat>((signal) => get("/v1/chat/completions/{completion_id}", { params, signal }));
  }
  return scan<Chat>(
    async (after, signal) =>
      batchOf(await get("/v1/chat/completions", { query: { after, limit: PAGE_SIZE, order: "desc" }, signal })),
    (chat) => contains(text, answerOf(chat), chat.model, inWords(chat.metadata)),
  );
}
