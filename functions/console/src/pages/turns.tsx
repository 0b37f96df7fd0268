/** The turns of a session, newest first. */
import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { addressOf, get } from "../api";
import { CopyAs, CopyButton } from "../components/copy";
import { Finder, useFilters } from "../components/finder";
import { Table, usePaged } from "../components/list";
import { EmptyState } from "../components/states";
import { Badge, Money, Time } from "../components/values";
import { cut, formatCount, formatMilliseconds } from "../format";
import { API_SESSION, API_TURN, sessionPath, SESSIONS, turnPath } from "../read/paths";
import { contains, findOne, scan } from "../read/scan";
import { textOf, timeOf } from "../read/steps";
import { useResource } from "../resource";
import { fillPath, Link, type PageProps } from "../router";
import type { Turn, TurnPlace } from "../turns";
import { NO_TURN, UUID } from "../read/ids";
import { Json } from "../components/json-view";

const STATUSES = ["in_progress", "awaiting_input", "completed", "failed", "cancelled"];
/** Turns are large. */
const TURNS = 20;

export default function TurnsPage({ params }: PageProps): JSX.Element {
  const agent_id = params["agent"]!;
  const session_id = params["session"]!;
  const { text, status } = useFilters();
  const load = useMemo(() => loaderOf({ agent_id, session_id }, text, status), [agent_id, session_id, text, status]);
  const paged = usePaged(load);
  const loadSession = useMemo(
    () => (signal: AbortSignal) =>
      get(API_SESSION, { params: { agent_id, session_id }, query: { turn_ids: [NO_TURN] }, signal }),
    [agent_id, session_id],
  );
  const session = useResource(loadSession).value;
  return (
    <div class="page page-wide">
      <header class="page-head">
        <p class="hint">
          <Link to="/agents">Agents</Link> › <Link to={fillPath("/agents/:agent", { agent: agent_id })}>Agent</Link> ›{" "}
          <Link to={fillPath(SESSIONS, { agent: agent_id })}>Sessions</Link>
        </p>
        <h1>{session ? cut(session.session_name || "Session without a name", 200) : "Turns"}</h1>
        <p class="with-action hint">
          <code>{session_id}</code>
          <CopyButton text={session_id} what="id of the session" />
        </p>
      </header>
      <Finder filters={{ text, status }} label="Words or id of a turn" statuses={STATUSES} />
      <Table
        caption="Turns"
        paged={paged}
        keyOf={({ turn_id }) => turn_id}
        empty={
          text || status ? (
            <EmptyState title="No turn matches" />
          ) : (
            <EmptyState title="Nothing has been said yet">
              <Link to={sessionPath(agent_id, session_id)}>Write the first message</Link>
            </EmptyState>
          )
        }
        columns={[
          {
            title: "Message",
            cell: ({ turn_id, input_messages }) => (
              <Link to={turnPath(agent_id, session_id, turn_id)}>
                {cut(textOf(input_messages.at(-1)?.content) || "No text", 120)}
              </Link>
            ),
          },
          { title: "Status", cell: (turn) => <Ending turn={turn} /> },
          { title: "Started", cell: ({ started_at }) => <Time at={started_at} /> },
          { title: "Time", isNumber: true, cell: tookOf },
          {
            title: "Steps",
            isNumber: true,
            cell: ({ steps, unfinished_step }) => formatCount(steps.length + (unfinished_step ? 1 : 0)),
          },
          {
            title: "Tokens",
            isNumber: true,
            cell: ({ usage }) => (usage?.total_tokens === undefined ? "–" : formatCount(usage.total_tokens)),
          },
          {
            title: "Cost",
            isNumber: true,
            cell: ({ receipt }) => (typeof receipt?.dollars === "number" ? <Money dollars={receipt.dollars} /> : "–"),
          },
        ]}
      />
      <div class="actions">
        <Link class="button button-secondary" to={sessionPath(agent_id, session_id)}>
          Talk in this session
        </Link>
        <CopyAs snippet={{ method: "GET", url: addressOf(`${API_SESSION}/turns`, { agent_id, session_id }).href }} />
        {session && <Json value={session} label="Session" />}
      </div>
    </div>
  );
}

function Ending({ turn }: { turn: Turn }): JSX.Element {
  return (
    <>
      <Badge status={turn.status} />
      {turn.error && <p class="hint state-text">{cut(turn.error.message, 120)}</p>}
    </>
  );
}

function tookOf({ started_at, completed_at, status }: Turn): string {
  if (!completed_at || status === "in_progress") return "runs …";
  return formatMilliseconds(timeOf(completed_at) - timeOf(started_at));
}

function loaderOf(at: TurnPlace, text: string, status: string) {
  if (UUID.test(text)) {
    const params = { ...at, turn_id: text.toLowerCase() };
    return findOne<Turn>((signal) => get(API_TURN, { params, signal }));
  }
  return scan<Turn>(
    async (after, signal) => {
      const page = await get(`${API_SESSION}/turns`, {
        params: { ...at },
        query: { after, limit: TURNS, order: "desc", ...(status && { status: status as Turn["status"] }) },
        signal,
      });
      return { items: page.data, next: page.has_more ? (page.next_after ?? page.data.at(-1)?.turn_id ?? null) : null };
    },
    (turn) =>
      contains(
        text,
        ...turn.input_messages.map(({ content }) => textOf(content)),
        textOf(turn.output_message.content),
        turn.error?.message,
      ),
  );
}
