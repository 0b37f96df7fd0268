/** Providers, with their health. */
import type { JSX } from "preact";
import { useCallback } from "preact/hooks";
import { get, type Schemas } from "../../api";
import { Button } from "../../components/button";
import { FindField, useFindLocal } from "../../components/find";
import { type Column, Table } from "../../components/list";
import { EmptyState } from "../../components/states";
import { useResource } from "../../resource";
import { ModelsHead } from "./head";

type Provider = Schemas["Provider"];
type Status = Provider["health"]["status"];

const HEALTH: Readonly<Record<Status, { words: string; tone: string }>> = {
  OK: { words: "works", tone: "good" },
  Error: { words: "fails", tone: "bad" },
  "Not Implemented": { words: "not checked", tone: "plain" },
};

/** Those that fail are first. */
const ORDER: readonly Status[] = ["Error", "OK", "Not Implemented"];

const APIS: Readonly<Record<string, string>> = {
  inference: "Models",
  safety: "Shields",
  vector_io: "Vector stores",
  tool_runtime: "Tools",
};

const COLUMNS: readonly Column<Provider>[] = [
  { title: "Provider", cell: ({ provider_id: id }) => <strong>{id}</strong> },
  {
    title: "Health",
    cell: ({ health: { status, message } }) => (
      <span class="badges">
        <span class={`badge badge-${HEALTH[status].tone}`}>{HEALTH[status].words}</span>
        {message && status !== "Not Implemented" && (
          <span class={status === "Error" ? "field-error" : "hint"}>{message}</span>
        )}
      </span>
    ),
  },
  { title: "Serves", cell: ({ api }) => APIS[api] ?? api },
  { title: "Type", cell: ({ provider_type: type }) => <code>{type}</code> },
  {
    title: "Address",
    cell: ({ config }) =>
      typeof config?.["url"] === "string" ? <code>{config["url"]}</code> : <span class="hint">–</span>,
  },
];

export default function ProvidersPage(): JSX.Element {
  const providers = useResource(useCallback(readProviders, []));
  const found = useFindLocal<Provider>(providers, ({ provider_id: id, api, provider_type: type }) => [id, api, type]);
  return (
    <div class="page page-wide">
      <ModelsHead />
      <div class="toolbar" role="search">
        <FindField found={found} label="Find by name" />
        <Button onClick={providers.reload} busy={providers.isLoading}>
          Check again
        </Button>
      </div>
      <Table
        path="/v1/providers"
        caption="Providers, those that fail first"
        columns={COLUMNS}
        paged={found.paged}
        keyOf={({ api, provider_id: id }) => `${api} ${id}`}
        empty={<EmptyState title="There is no such provider" />}
      />
    </div>
  );
}

async function readProviders(signal: AbortSignal): Promise<readonly Provider[]> {
  const { data } = await get("/v1/providers", { signal });
  const place = ({ health }: Provider) => ORDER.indexOf(health.status);
  return data.toSorted((one, other) => place(one) - place(other));
}
