/** All agents, newest first. */
import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { get, remove, type Schemas } from "../api";
import { ConfirmButton } from "../components/confirm-button";
import { TextField } from "../components/field";
import { PageHead } from "../components/head";
import { Table, usePaged } from "../components/list";
import { NameCell } from "../components/name-cell";
import { EmptyState } from "../components/states";
import { toast } from "../components/toast";
import { Time } from "../components/values";
import { cut, formatName } from "../format";
import { UUID } from "../read/ids";
import { findOne, PAGE_SIZE, scan } from "../read/scan";
import { fillPath, Link } from "../router";

type Agent = Schemas["Agent"];

function loaderOf(wanted: string) {
  if (UUID.test(wanted)) {
    const params = { agent_id: wanted.toLowerCase() };
    return findOne<Agent>((signal) => get("/v1/agents/{agent_id}", { params, signal }));
  }
  return scan<Agent>(async (after, signal) => {
    const query = { order: "desc", limit: PAGE_SIZE, after, name: wanted || null } as const;
    const page = await get("/v1/agents", { query, signal });
    return { items: page.data, next: page.next_after ?? null };
  });
}

export default function AgentsPage(): JSX.Element {
  const [search, setSearch] = useState("");
  const wanted = search.trim();
  const load = useMemo(() => loaderOf(wanted), [wanted]);
  const paged = usePaged(load);
  const drop = async (agent: Agent) => {
    await remove("/v1/agents/{agent_id}", { params: { agent_id: agent.agent_id } });
    toast("Agent deleted");
    paged.reload();
  };
  return (
    <div class="page page-wide">
      <PageHead
        title="Agents"
        action={
          <Link to="/agents/new" class="button button-primary">
            New agent
          </Link>
        }
      />
      <TextField label="Find by name or id" type="search" value={search} onText={setSearch} />
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
            cell: ({ agent_id: id, agent_config: { name } }) => (
              <NameCell to={fillPath("/agents/:agent", { agent: id })} name={name ?? ""} id={id} />
            ),
          },
          { title: "Model", cell: ({ agent_config: { model } }) => <span class="mono">{cut(model, 200)}</span> },
          { title: "Created", cell: ({ created_at }) => <Time at={created_at} /> },
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
                  text={`${cut(formatName(agent.agent_config.name || agent.agent_id), 200)} and all its sessions will be gone.`}
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
