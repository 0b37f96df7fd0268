/** Stored responses, newest first. */
import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { addressOf, get, type Schemas } from "../api";
import { CopyAs } from "../components/copy";
import { Finder, useFilters } from "../components/finder";
import { PageHead } from "../components/head";
import { Table, usePaged } from "../components/list";
import { EmptyState } from "../components/states";
import { Badge, Money, Time } from "../components/values";
import { cut, formatCount, formatSeconds } from "../format";
import { responsePath } from "../read/paths";
import { batchOf, contains, findOne, PAGE_SIZE, scan } from "../read/scan";
import { textOf } from "../read/steps";
import { Link } from "../router";

type Listed = Schemas["ListedResponse"];

const STATUSES = ["queued", "in_progress", "completed", "incomplete", "failed", "cancelled"] as const;

export default function ResponsesPage(): JSX.Element {
  const { text, status } = useFilters();
  const load = useMemo(() => loaderOf(text, status), [text, status]);
  const paged = usePaged(load);
  return (
    <div class="page page-wide">
      <PageHead
        title="Responses"
        action={
          <Link to="/responses/new" class="button button-primary">
            New response
          </Link>
        }
      />
      <Finder filters={{ text, status }} label="Words, model or id" statuses={STATUSES} />
      <Table
        caption="Responses"
        paged={paged}
        keyOf={({ id }) => id}
        empty={
          text || status ? (
            <EmptyState title="No response matches" />
          ) : (
            <EmptyState title="There are no responses yet">
              <Link to="/responses/new">Make the first one</Link>
            </EmptyState>
          )
        }
        columns={[
          {
            title: "Response",
            cell: (response) => <Link to={responsePath(response.id)}>{cut(lineOf(response), 120)}</Link>,
          },
          {
            title: "Status",
            cell: ({ status: state, error }) => (
              <>
                <Badge status={state} />
                {error && <p class="hint state-text">{cut(error.message, 120)}</p>}
              </>
            ),
          },
          { title: "Model", cell: ({ model }) => <code>{cut(model, 100)}</code> },
          { title: "Created", cell: ({ created_at }) => <Time at={created_at} /> },
          {
            title: "Time",
            isNumber: true,
            cell: ({ created_at, completed_at }) => (completed_at ? formatSeconds(completed_at - created_at) : "–"),
          },
          {
            title: "Tokens",
            isNumber: true,
            cell: ({ usage }) => (usage ? formatCount(usage.total_tokens) : "–"),
          },
          {
            title: "Cost",
            isNumber: true,
            cell: ({ receipt }) => (typeof receipt?.dollars === "number" ? <Money dollars={receipt.dollars} /> : "–"),
          },
        ]}
      />
      <CopyAs snippet={{ method: "GET", url: addressOf("/v1/responses").href }} />
    </div>
  );
}

/** Return what a response said, or its id. */
function lineOf({ id, output = [] }: Listed): string {
  const message = output.find((item) => item.type === "message");
  const said = message && "content" in message ? textOf(message.content).trim() : "";
  const called = output.find((item) => item.type === "function_call");
  return said || (called && "name" in called ? `Calls ${called.name}` : id);
}

function loaderOf(text: string, status: string) {
  if (/^resp_\w+$/.test(text)) {
    return findOne<Listed>(
      async (signal) => (await get("/v1/responses/{response_id}", { params: { response_id: text }, signal })) as Listed,
    );
  }
  return scan<Listed>(
    async (after, signal) => {
      const chosen = { status: (status || null) as (typeof STATUSES)[number] | null };
      return batchOf<Listed>(await get("/v1/responses", { query: { after, limit: PAGE_SIZE, ...chosen }, signal }));
    },
    (response) =>
      contains(
        text,
        response.model,
        response.error?.message,
        response.conversation?.id,
        ...(response.output ?? []).map((item) => ("content" in item ? textOf(item.content) : "")),
        ...Object.values(response.metadata ?? {}).map(String),
      ),
  );
}
