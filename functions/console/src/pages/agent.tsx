/** An agent, and its sessions. */
import type { JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { get, post, remove, type Schemas } from "../api";
import { Button } from "../components/button";
import { ConfirmButton } from "../components/confirm-button";
import { CopyButton } from "../components/copy";
import { Field } from "../components/field";
import { JsonView } from "../components/json-view";
import { EmptyState, Table, usePaged } from "../components/list";
import { ErrorState, Skeleton } from "../components/states";
import { toast } from "../components/toast";
import { Time } from "../components/values";
import { type ApiError, toApiError } from "../errors";
import { formatTime } from "../format";
import { fillPath, Link, navigate, type PageProps } from "../router";
import { newestFirst } from "../talk/newest-first";
import { cut } from "../talk/part-view";

type Agent = Schemas["Agent"];
type Session = Schemas["Session"];

export default function AgentPage({ params }: PageProps): JSX.Element {
  const agentId = params["agent"]!;
  const [agent, setAgent] = useState<Agent | null>(null);
  const [error, setError] = useState<ApiError | null>(null);
  const load = () => {
    setError(null);
    get("/v1/agents/{agent_id}", { params: { agent_id: agentId } }).then(setAgent, (failure: unknown) =>
      setError(toApiError(failure)),
    );
  };
  useEffect(load, [agentId]);
  if (error) return <ErrorState error={error} onRetry={load} />;
  if (!agent) return <Skeleton lines={8} />;
  return (
    <div class="page page-wide">
      <AgentHead agent={agent} />
      <NewSession agentId={agentId} />
      <Sessions agentId={agentId} />
      <details class="part">
        <summary>
          <span class="part-label">JSON of the agent</span>
        </summary>
        <div class="part-body">
          <JsonView value={agent} label="Agent" />
        </div>
      </details>
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
      <header class="page-head">
        <p class="hint">
          <Link to="/agents">Agents</Link>
        </p>
        <h1>{cut(settings.name || "Agent without a name", 300)}</h1>
        {settings.instructions && <p class="lead state-text">{cut(settings.instructions, 400)}</p>}
      </header>
      <dl class="facts">
        <dt>Model</dt>
        <dd class="mono">{settings.model}</dd>
        <dt>Tools</dt>
        <dd>{tools.length > 0 ? cut(tools.join(", "), 500) : "none"}</dd>
        <dt>Id</dt>
        <dd class="with-action">
          <code>{agent_id}</code>
          <CopyButton text={agent_id} what="id of the agent" />
        </dd>
        <dt>Made</dt>
        <dd>
          <Time at={created_at} />
        </dd>
      </dl>
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
  const [error, setError] = useState<ApiError | null>(null);
  const [isBusy, setBusy] = useState(false);
  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    setError(null);
    try {
      const session_name = name.trim() || `Session of ${formatTime(Date.now() / 1000)}`;
      const params = { agent_id: agentId };
      const { session_id } = await post("/v1/agents/{agent_id}/session", { session_name }, { params });
      navigate(fillPath("/agents/:agent/sessions/:session", { agent: agentId, session: session_id }));
    } catch (failure) {
      setError(toApiError(failure));
      setBusy(false);
    }
  };
  return (
    <form class="card stack" onSubmit={(event) => void submit(event)}>
      <div class="one-line">
        <Field label="Name of the session">
          {(ids) => (
            <input
              {...ids}
              value={name}
              maxLength={200}
              placeholder="Without a name: the time"
              onInput={(event) => setName(event.currentTarget.value)}
            />
          )}
        </Field>
        <Button type="submit" kind="primary" busy={isBusy}>
          Talk in a new session
        </Button>
      </div>
      {error && <ErrorState error={error} />}
    </form>
  );
}

function Sessions({ agentId }: { agentId: string }): JSX.Element {
  const load = useMemo(
    () =>
      newestFirst<Session>((after, signal) =>
        get("/v1/agents/{agent_id}/sessions", {
          params: { agent_id: agentId },
          query: { order: "desc", limit: 50, after },
          signal,
        }),
      ),
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
      <div class="page-head-row">
        <h2>Sessions</h2>
        <Link to={fillPath("/agents/:agent/sessions", { agent: agentId })}>Find sessions and turns</Link>
      </div>
      <Table
        caption="Sessions"
        paged={paged}
        keyOf={({ session_id }) => session_id}
        empty={<EmptyState title="There are no sessions yet">Begin one above.</EmptyState>}
        columns={[
          {
            title: "Name",
            cell: ({ session_id, session_name }) => (
              <Link to={fillPath("/agents/:agent/sessions/:session", { agent: agentId, session: session_id })}>
                {cut(session_name || "Without a name", 200)}
              </Link>
            ),
          },
          { title: "Id", cell: ({ session_id }) => <code>{session_id}</code> },
          { title: "Begun", cell: ({ started_at }) => <Time at={started_at} /> },
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
