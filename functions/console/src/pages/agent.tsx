/** An agent, and its sessions. */
import type { JSX } from "preact";
import { useCallback, useMemo, useState } from "preact/hooks";
import { addressOf, get, post, remove, type Schemas } from "../api";
import { useAction } from "../components/action";
import { Button } from "../components/button";
import { ConfirmButton } from "../components/confirm-button";
import { CopyAs } from "../components/copy";
import { Facts, Id } from "../components/facts";
import { TextField } from "../components/field";
import { PageHead } from "../components/head";
import { Table, usePaged } from "../components/list";
import { NameCell } from "../components/name-cell";
import { EmptyState, ErrorState, Skeleton } from "../components/states";
import { toast } from "../components/toast";
import { Time } from "../components/values";
import { cut, formatTime } from "../format";
import { sessionPath, SESSIONS } from "../read/paths";
import { PAGE_SIZE, scan } from "../read/scan";
import { useResource } from "../resource";
import { fillPath, Link, navigate, type PageProps } from "../router";
import { Json } from "../components/json-view";

type Agent = Schemas["Agent"];
type Session = Schemas["Session"];

export default function AgentPage({ params }: PageProps): JSX.Element {
  const agentId = params["agent"]!;
  const load = useCallback(
    (signal: AbortSignal) => get("/v1/agents/{agent_id}", { params: { agent_id: agentId }, signal }),
    [agentId],
  );
  const { value: agent, error, reload } = useResource(load);
  if (error) return <ErrorState error={error} onRetry={reload} />;
  if (!agent) return <Skeleton lines={8} />;
  return (
    <div class="page page-wide">
      <AgentHead agent={agent} />
      <NewSession agentId={agentId} />
      <Sessions agentId={agentId} />
      <Json value={agent} label="Agent">
        <CopyAs snippet={{ method: "GET", url: addressOf("/v1/agents/{agent_id}", { agent_id: agentId }).href }} />
      </Json>
    </div>
  );
}

function AgentHead({ agent }: { agent: Agent }): JSX.Element {
  const { agent_id, agent_config: settings, created_at } = agent;
  const drop = async () => {
    await remove("/v1/agents/{agent_id}", { params: { agent_id } });
    toast("Agent deleted");
    navigate("/agents");
  };
  const tools = [
    ...(settings.toolgroups ?? []).map((each) => (typeof each === "string" ? each : each.name)),
    ...(settings.client_tools ?? []).map((each) => each.name),
  ];
  return (
    <>
      <PageHead
        title={cut(settings.name || "Agent without a name", 300)}
        above={[["/agents", "Agents"]]}
        lead={settings.instructions && cut(settings.instructions, 400)}
      />
      <Facts
        rows={[
          ["Model", <span class="mono">{settings.model}</span>],
          ["Tools", tools.length > 0 ? cut(tools.join(", "), 500) : "none"],
          ["Id", <Id id={agent_id} of="the agent" />],
          ["Created", <Time at={created_at} />],
        ]}
      />
      <div class="actions">
        <Link to={`/agents/new?copy=${encodeURIComponent(agent_id)}`} class="button button-secondary">
          Copy this agent
        </Link>
        <ConfirmButton
          label="Delete"
          title="Delete this agent?"
          text="The agent and all its sessions will be gone."
          onConfirm={drop}
        />
      </div>
    </>
  );
}

function NewSession({ agentId }: { agentId: string }): JSX.Element {
  const [name, setName] = useState("");
  const action = useAction(async () => {
    const session_name = name.trim() || `Session of ${formatTime(Date.now() / 1000)}`;
    const params = { agent_id: agentId };
    const { session_id } = await post("/v1/agents/{agent_id}/session", { session_name }, { params });
    navigate(sessionPath(agentId, session_id));
  });
  return (
    <form class="card stack" onSubmit={action.run}>
      <div class="one-line">
        <TextField
          label="Name of the session"
          maxLength={200}
          placeholder="Without a name: the time"
          value={name}
          onText={setName}
        />
        <Button type="submit" kind="primary" busy={action.isBusy}>
          Talk in a new session
        </Button>
      </div>
      {action.error && <ErrorState error={action.error} />}
    </form>
  );
}

function Sessions({ agentId }: { agentId: string }): JSX.Element {
  const load = useMemo(
    () =>
      scan<Session>(async (after, signal) => {
        const query = { order: "desc", limit: PAGE_SIZE, after } as const;
        const page = await get("/v1/agents/{agent_id}/sessions", { params: { agent_id: agentId }, query, signal });
        return { items: page.data, next: page.next_after ?? null };
      }),
    [agentId],
  );
  const paged = usePaged(load);
  const drop = async ({ session_id }: Session) => {
    await remove("/v1/agents/{agent_id}/session/{session_id}", { params: { agent_id: agentId, session_id } });
    toast("Session deleted");
    paged.reload();
  };
  return (
    <section class="stack">
      <div class="section-head">
        <h2>Sessions</h2>
        <Link to={fillPath(SESSIONS, { agent: agentId })}>Find sessions and turns</Link>
      </div>
      <Table
        caption="Sessions"
        paged={paged}
        keyOf={({ session_id }) => session_id}
        empty={<EmptyState title="There are no sessions yet">Begin one above.</EmptyState>}
        columns={[
          {
            title: "Name",
            cell: ({ session_id: id, session_name: name }) => (
              <NameCell to={sessionPath(agentId, id)} name={name} id={id} />
            ),
          },
          { title: "Started", cell: ({ started_at }) => <Time at={started_at} /> },
          {
            title: "Actions",
            cell: (session) => (
              <ConfirmButton
                kind="quiet"
                label="Delete"
                aria-label={`Delete ${cut(session.session_name || session.session_id, 100)}`}
                title="Delete this session?"
                text={`${cut(session.session_name || session.session_id, 200)} and all its turns will be gone.`}
                onConfirm={() => drop(session)}
              />
            ),
          },
        ]}
      />
    </section>
  );
}
