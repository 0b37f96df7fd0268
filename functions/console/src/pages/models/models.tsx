/** Models that this caller may use. */
import type { JSX } from "preact";
import { useCallback, useState } from "preact/hooks";
import { get, type Schemas } from "../../api";
import { FindField, useFindLocal } from "../../components/find";
import { ChoiceField } from "../../components/field";
import { JsonView } from "../../components/json-view";
import { type Column, Table } from "../../components/list";
import { EmptyState } from "../../components/states";
import { formatName } from "../../format";
import { useResource } from "../../resource";
import { ModelsHead } from "./head";

type Model = Schemas["ModelEntry"];

const TYPES: Readonly<Record<NonNullable<Model["model_type"]>, string>> = {
  llm: "Language model",
  embedding: "Embedding",
};

const COLUMNS: readonly Column<Model>[] = [
  {
    title: "Model",
    cell: ({ identifier, override, default: isDefault }) => (
      <span class="badges">
        <code>{formatName(identifier)}</code>
        {isDefault && <span class="badge badge-good">default</span>}
        {override && <span class="badge badge-busy">override</span>}
      </span>
    ),
  },
  { title: "Type", cell: ({ model_type: type }) => TYPES[type ?? "llm"] },
  { title: "Provider", cell: ({ provider_id: provider }) => provider },
  { title: "At the provider", cell: ({ provider_resource_id: id }) => <code>{id}</code> },
  {
    title: "Metadata",
    cell: ({ metadata }) =>
      metadata && Object.keys(metadata).length > 0 ? (
        <details>
          <summary>{summaryOf(metadata)}</summary>
          <JsonView value={metadata} label="Metadata" />
        </details>
      ) : (
        <span class="hint">none</span>
      ),
  },
];

function summaryOf(metadata: Record<string, unknown>): string {
  const dimension = metadata["embedding_dimension"];
  if (typeof dimension === "number") return `${dimension} dimensions`;
  const count = Object.keys(metadata).length;
  return count === 1 ? "1 value" : `${count} values`;
}

export default function ModelsPage(): JSX.Element {
  const models = useResource<readonly Model[]>(
    useCallback(async (signal: AbortSignal) => (await get("/v1/models", { signal })).data, []),
  );
  const [type, setType] = useState("");
  const chosen = type ? (models.value?.filter((model) => model.model_type === type) ?? null) : models.value;
  const found = useFindLocal<Model>({ ...models, value: chosen }, ({ identifier, provider_id: id }) => [
    identifier,
    id,
  ]);
  return (
    <div class="page page-wide">
      <ModelsHead />
      <div class="toolbar" role="search">
        <FindField found={found} label="Find by id or provider" />
        <ChoiceField label="Type" value={type} choices={[["", "All"], ...Object.entries(TYPES)]} onChoose={setType} />
      </div>
      <Table
        path="/v1/models"
        caption="Models"
        columns={COLUMNS}
        paged={found.paged}
        keyOf={({ identifier, model_type: kind }) => `${kind} ${identifier}`}
        empty={<EmptyState title={found.text || type ? "There is no such model" : "No model is available to you"} />}
      />
    </div>
  );
}
