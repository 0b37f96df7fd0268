/** All agents, newest first. */
import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { get, remove, type Schemas } from "../api";
import { ConfirmButton } from "../components/confirm-button";
import { Field } from "../components/field";
import { EmptyState, Table, usePaged } from "../components/list";
import { toast } from "../components/toast";
import { Time } from "../components/values";
import { toApiError } from "../errors";
import { fillPath, Link } from "../router";
import { newestFirst } from "../talk/newest-first";
import { cut } from "../talk/part-view";

type Agent = Schemas["Agent"];

const ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const LIMIT = 50;

function findByName(name: string) {
  return newestFirst<Agent>((after, signal) =>
    get("/v1/agents", { query: { order: "desc", limit: LIMIT, after, name: name || null }, signal }),
  );
}

function findById(agent_id: string) {
  return newestFirst<Agent>(async (_, signal) => {
    try {
      return { data: [await get("/v1/agents/{agent_id}", { params: { agent_id }, signal })], has_more: false };
    } catch (error) {
      if (toApiError(error).status === 404) return { data: [], has_more: false };
      throw error;
    }
  });
}

export default function AgentsPage(): JSX.Element {
  const [search, setSearch] = useState("");
  const wanted = search.trim();
  const load = useMemo(() => (ID.test(wanted) ? findById(wanted.toLowerCase()) : findByName(wanted)), [wanted]);
  const paged = usePaged(load);
  const drop = async (agent: Agent) => {
    await remove("/v1/agents/{agent_id}", { params: { agent_id: agent.agent_id } });
    toast("Agent deleted");
    paged.reload();
  };
  return (
    <div class="page page-wide">
      <header class="page-head page-head-row">
        <h1>Agents</h1>
        <Link to="/agents/new" class="button button-primary">
          New agent
        </Link>
      </header>
      <Field label="Find by name or id">
        {(ids) => (
          <input {...ids} type="search" value={search} onInput={(event) => setSearch(event.currentTarget.value)} />
        )}
      </Field>
      <Table
        caption="Agents"
        paged={paged}
        keyOf={({ agent_id }) => agent_id}
        empty={
          wanted ? (
            <EmptyState title="No agent has this name or id" />
          ) : (
            <EmptyState title="There are no agents yet">
              <Link to="/agents/new">Make the first one</Link>
            </EmptyState>
          )
        }
        columns={[
          {
            title: "Name",
            cell: ({ agent_id, agent_config: { name } }) => (
              <Link to={fillPath("/agents/:agent", { agent: agent_id })}>{cut(name || "Without a name", 200)}</Link>
            ),
          },
          { title: "Model", cell: ({ agent_config: { model } }) => <span class="mono">{cut(model, 200)}</span> },
          { title: "Id", cell: ({ agent_id }) => <code>{agent_id}</code> },
          { title: "Made", cell: ({ created_at }) => <Time at={created_at} /> },
          {
            title: "Actions",
            cell: (agent) => (
              <div class="row-actions">
                <Link to={`/agents/new?copy=${encodeURIComponent(agent.agent_id)}`} class="button button-quiet">
                  Copy
                </Link>
                <ConfirmButton
                  kind="quiet"
                  label="Delete"
                  aria-label={`Delete ${cut(agent.agent_config.name || agent.agent_id, 100)}`}
                  title="Delete this agent?"
                  text={`${cut(agent.agent_config.name || agent.agent_id, 200)} and all its sessions will be gone.`}
                  onConfirm={() => drop(agent)}
                />
              </div>
            ),
          },
        ]}
      />
    </div>
  );
}
