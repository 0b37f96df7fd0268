/** Shields, which check what goes into models and comes out of them. */
import type { JSX } from "preact";
import { useCallback } from "preact/hooks";
import { get, type Schemas } from "../../api";
import { FindField, useFindLocal } from "../../components/find";
import { JsonView } from "../../components/json-view";
import { type Column, Table } from "../../components/list";
import { EmptyState } from "../../components/states";
import { formatName } from "../../format";
import { useResource } from "../../resource";
import { ModelsHead } from "./head";

type Shield = Schemas["ShieldEntry"];

const COLUMNS: readonly Column<Shield>[] = [
  { title: "Shield", cell: ({ identifier }) => <code>{formatName(identifier)}</code> },
  { title: "Provider", cell: ({ provider_id: provider }) => provider },
  { title: "At the provider", cell: ({ provider_resource_id: id }) => <code>{id}</code> },
  {
    title: "Params",
    cell: ({ params }) =>
      params && Object.keys(params).length > 0 ? (
        <details>
          <summary>Show</summary>
          <JsonView value={params} label="Params, without credentials" />
        </details>
      ) : (
        <span class="hint">none</span>
      ),
  },
];

export default function ShieldsPage(): JSX.Element {
  const shields = useResource<readonly Shield[]>(
    useCallback(async (signal: AbortSignal) => (await get("/v1/shields", { signal })).data, []),
  );
  const found = useFindLocal<Shield>(shields, ({ identifier, provider_id: id }) => [identifier, id]);
  return (
    <div class="page page-wide">
      <ModelsHead />
      <div class="toolbar" role="search">
        <FindField found={found} label="Find by name or provider" />
      </div>
      <Table
        path="/v1/shields"
        caption="Shields"
        columns={COLUMNS}
        paged={found.paged}
        keyOf={({ identifier }) => identifier}
        empty={
          <EmptyState title={found.text ? "There is no such shield" : "There is no shield yet"}>
            {!found.text && <p>Shields are registered with POST /v1/shields, and named by agents.</p>}
          </EmptyState>
        }
      />
    </div>
  );
}
