/** Toolgroups, and the servers that they come from. */
import type { JSX } from "preact";
import { useCallback, useState } from "preact/hooks";
import { get } from "../../api";
import { Button } from "../../components/button";
import { FindField, useFindLocal } from "../../components/find";
import { PageHead } from "../../components/head";
import { type Column, Table } from "../../components/list";
import { EmptyState } from "../../components/states";
import { cut, formatCount, formatName } from "../../format";
import { useResource } from "../../resource";
import { Link } from "../../router";
import { may } from "../../session";
import { type Group, groupPath, targetsOf } from "./api";
import { Register } from "./register";

/** The characters that are shown of a name. */
const SHOWN = 200;

const COLUMNS: readonly Column<Group>[] = [
  {
    title: "Toolgroup",
    cell: ({ identifier, override }) => (
      <>
        <Link to={groupPath(identifier)} class="wrap">
          {formatName(identifier)}
        </Link>
        {override && <span class="badge badge-busy">override</span>}
      </>
    ),
  },
  { title: "Provider", cell: ({ provider_id: provider }) => provider },
  { title: "Server", cell: (group) => <Server group={group} /> },
];

/** The server of a toolgroup, or what its tools call. */
function Server({ group }: { group: Group }): JSX.Element {
  const { kind, names } = targetsOf(group);
  const [name, ...others] = names;
  if (!name) return <span class="hint">{kind || "part of Stint"}</span>;
  if (others.length > 0) return <>{`${formatCount(names.length)} ${kind}s`}</>;
  return (
    <>
      {kind} <code class="wrap">{formatName(cut(name, SHOWN))}</code>
    </>
  );
}

export default function ToolsPage(): JSX.Element {
  const groups = useResource<readonly Group[]>(
    useCallback(async (signal: AbortSignal) => (await get("/v1/toolgroups", { signal })).data, []),
  );
  const found = useFindLocal<Group>(groups, (group) => [
    group.identifier,
    group.provider_id,
    ...targetsOf(group).names,
  ]);
  const [isNew, setNew] = useState(false);
  return (
    <div class="page page-wide">
      <PageHead title="Tools" lead="Toolgroups that agents can name, and that the server runs." />
      <div class="toolbar" role="search">
        <FindField found={found} label="Find by name, provider or server" />
        {may("registry:write") && (
          <Button kind="primary" onClick={() => setNew(true)}>
            Register a toolgroup
          </Button>
        )}
      </div>
      <Table
        path="/v1/toolgroups"
        caption="Toolgroups"
        columns={COLUMNS}
        paged={found.paged}
        keyOf={({ identifier }) => identifier}
        empty={<EmptyState title={found.text ? "No toolgroup has this name" : "There is no toolgroup"} />}
      />
      <Register isOpen={isNew} onClose={() => setNew(false)} />
    </div>
  );
}
