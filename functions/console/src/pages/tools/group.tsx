/** A toolgroup with its tools. */
import type { JSX } from "preact";
import { useCallback } from "preact/hooks";
import { addressOf, get, remove } from "../../api";
import { Button } from "../../components/button";
import { ConfirmButton } from "../../components/confirm-button";
import { CopyAs } from "../../components/copy";
import { FindField, useFindLocal } from "../../components/find";
import { Facts } from "../../components/facts";
import { PageHead } from "../../components/head";
import { JsonView } from "../../components/json-view";
import { EmptyState, ErrorState, Skeleton } from "../../components/states";
import { formatName } from "../../format";
import { toast } from "../../components/toast";
import { type Resource, useResource } from "../../resource";
import { Link, navigate, type PageProps } from "../../router";
import { may } from "../../session";
import { type Group, ownCredentials, type Tool, toolPath } from "./api";
import { Credentials } from "./credentials";
import { Description } from "./description";

const GROUP = "/v1/toolgroups/{toolgroup_id}";

export default function GroupPage({ params }: PageProps): JSX.Element {
  const id = params["group"]!;
  const group = useResource(
    useCallback((signal: AbortSignal) => get(GROUP, { params: { toolgroup_id: id }, signal }), [id]),
  );
  const tools = useResource<readonly Tool[]>(
    useCallback(
      async (signal: AbortSignal) =>
        (await get("/v1/tools", { query: { toolgroup_id: id }, headers: ownCredentials(), signal })).data,
      [id],
    ),
  );
  return (
    <div class="page">
      <PageHead title={formatName(id)} above={[["/tools", "Tools"]]} />
      {group.error && <ErrorState error={group.error} onRetry={group.reload} />}
      {!group.value && !group.error && <Skeleton lines={4} />}
      {group.value && <GroupFacts group={group.value} />}
      {group.value && <Tools group={id} tools={tools} />}
    </div>
  );
}

function GroupFacts({ group }: { group: Group }): JSX.Element {
  const { identifier: id, provider_id: provider, mcp_endpoint: endpoint, args, override } = group;
  const unregister = async () => {
    await remove(GROUP, { params: { toolgroup_id: id } });
    toast("Toolgroup removed");
    navigate("/tools", { replace: true });
  };
  return (
    <section class="card stack" aria-label="The toolgroup">
      <Facts
        rows={[
          ["Provider", provider],
          endpoint && ["Server", <code>{formatName(endpoint.uri)}</code>],
          override && ["Override", "An admin has given this name another meaning."],
        ]}
      />
      {args && Object.keys(args).length > 0 && (
        <details>
          <summary>Args</summary>
          <JsonView value={args} label="Args, without credentials" />
        </details>
      )}
      <div class="actions">
        <CopyAs snippet={{ method: "GET", url: addressOf(GROUP, { toolgroup_id: id }).href }} />
        {may("registry:write") && (
          <ConfirmButton
            label="Remove"
            title="Remove this toolgroup?"
            onConfirm={unregister}
            text={`Agents that name ${formatName(id)} cannot start turns until they are changed or it is registered again.`}
          />
        )}
      </div>
    </section>
  );
}

function Tools({ group, tools }: { group: string; tools: Resource<readonly Tool[]> }): JSX.Element {
  const found = useFindLocal<Tool>(tools, ({ identifier, description }) => [identifier, description]);
  const { items, hasMore, isLoading, error, loadMore } = found.paged;
  const isLong = (tools.value?.length ?? 0) > 10;
  return (
    <section class="stack" aria-label="Tools">
      <h2>Tools</h2>
      <Credentials />
      {isLong && <FindField found={found} label="Find a tool" />}
      {error && <ErrorState error={error} onRetry={tools.reload} />}
      {isLoading && <Skeleton lines={5} />}
      {tools.value && items.length === 0 && (
        <EmptyState title={found.text ? "No tool has this name" : "The server has no tools"} />
      )}
      <ul class="results">
        {items.map((tool) => (
          <li key={tool.identifier} class="card stack">
            <ToolEntry group={group} tool={tool} />
          </li>
        ))}
      </ul>
      {hasMore && (
        <div class="more">
          <Button onClick={loadMore}>Show more tools</Button>
        </div>
      )}
    </section>
  );
}

function ToolEntry({ group, tool }: { group: string; tool: Tool }): JSX.Element {
  return (
    <>
      <h3 class="mono wrap">
        <Link to={toolPath(group, tool.identifier)}>{formatName(tool.identifier)}</Link>
      </h3>
      <Description text={tool.description} />
      {tool.parameters.length > 0 && (
        <p class="hint wrap">
          Takes{" "}
          {tool.parameters
            .slice(0, 12)
            .map(
              ({ name, parameter_type: type, required }) =>
                `${formatName(name)} (${type}${required ? "" : ", optional"})`,
            )
            .join(", ")}
          {tool.parameters.length > 12 && " and more"}
        </p>
      )}
    </>
  );
}
