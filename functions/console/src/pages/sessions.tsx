/** The sessions of an agent, with how their last turns ended. */
import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { addressOf, get, type Schemas } from "../api";
import { CopyAs } from "../components/copy";
import { Finder, useFilters } from "../components/finder";
import { PageHead } from "../components/head";
import { Table, usePaged } from "../components/list";
import { NameCell } from "../components/name-cell";
import { EmptyState } from "../components/states";
import { Badge, Time } from "../components/values";
import { NO_TURN, UUID } from "../read/ids";
import { API_SESSION, sessionPath, turnPath, turnsPath } from "../read/paths";
import { type Batch, findOne, PAGE_SIZE, scan } from "../read/scan";
import { fillPath, Link, type PageProps } from "../router";

type Session = Schemas["Session"];

const STATUSES = ["in_progress", "awaiting_input", "completed", "failed", "cancelled"] as const;

export default function SessionsPage({ params }: PageProps): JSX.Element {
  const agentId = params["agent"]!;
  const { text, status } = useFilters();
  const load = useMemo(() => loaderOf(agentId, text, status), [agentId, text, status]);
  const paged = usePaged(load);
  const url = addressOf("/v1/agents/{agent_id}/sessions", { agent_id: agentId }, { order: "desc" }).href;
  return (
    <div class="page page-wide">
      <PageHead
        title="Sessions"
        above={[
          ["/agents", "Agents"],
          [fillPath("/agents/:agent", { agent: agentId }), "Agent"],
        ]}
      />
      <Finder filters={{ text, status }} label="Name or id" statuses={STATUSES} />
      <Table
        caption="Sessions"
        paged={paged}
        keyOf={({ session_id }) => session_id}
        empty={
          text || status ? (
            <EmptyState title="No session matches" />
          ) : (
            <EmptyState title="There are no sessions yet">
              <Link to={fillPath("/agents/:agent", { agent: agentId })}>Begin one</Link>
            </EmptyState>
          )
        }
        columns={[
          {
            title: "Name",
            cell: ({ session_id: id, session_name: name }) => (
              <NameCell to={turnsPath(agentId, id)} name={name} id={id} />
            ),
          },
          { title: "Last turn", cell: (session) => <LastTurn agentId={agentId} session={session} /> },
          { title: "Started", cell: ({ started_at }) => <Time at={started_at} /> },
          {
            title: "Continue",
            cell: ({ session_id }) => (
              <Link to={sessionPath(agentId, session_id)} aria-label={`Talk in ${session_id}`}>
                Talk
              </Link>
            ),
          },
        ]}
      />
      <CopyAs snippet={{ method: "GET", url }} />
    </div>
  );
}

function LastTurn({ agentId, session: { session_id, last_turn } }: { agentId: string; session: Session }): JSX.Element {
  if (!last_turn) return <span class="hint">none</span>;
  return (
    <span class="facts-line">
      <Badge status={last_turn.status} />
      <Link to={turnPath(agentId, session_id, last_turn.turn_id)}>
        <Time at={last_turn.started_at} />
      </Link>
    </span>
  );
}

function loaderOf(agentId: string, text: string, status: string) {
  const params = { agent_id: agentId };
  if (UUID.test(text)) {
    const one = { ...params, session_id: text.toLowerCase() };
    return findOne<Session>(async (signal) => {
      const [session, turns] = await Promise.all([
        get(API_SESSION, { params: one, query: { turn_ids: [NO_TURN] }, signal }),
        get(`${API_SESSION}/turns`, { params: one, query: { limit: 1 }, signal }),
      ]);
      return { ...session, last_turn: turns.data[0] ?? null };
    });
  }
  return scan<Session>(async (after, signal): Promise<Batch<Session>> => {
    const chosen = { name: text || null, status: (status || null) as (typeof STATUSES)[number] | null };
    const page = await get("/v1/agents/{agent_id}/sessions", {
      params,
      query: { order: "desc", limit: PAGE_SIZE, after, include: ["last_turn"], ...chosen },
      signal,
    });
    return { items: page.data, next: page.has_more ? (page.next_after ?? page.data.at(-1)?.session_id ?? null) : null };
  });
}
