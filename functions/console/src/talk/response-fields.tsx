/** The settings of a response. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { Button } from "../components/button";
import { Check } from "../components/check";
import { TextField } from "../components/field";
import { type FieldProblem, isRecord } from "../errors";
import { cut } from "../format";
import { ChoiceSetting, Group, JsonSetting, NumberSetting, TextSetting } from "./setting-fields";
import { listAt, problemAt, type Settings, textAt, valueAt } from "./settings";

/** What a form offers. Stores and conversations have names. */
export interface OfferedToResponses {
  models: readonly string[];
  stores: readonly (readonly [string, string])[];
  conversations: readonly (readonly [string, string])[];
}

interface ResponseFieldsProps {
  settings: Settings;
  problems: readonly FieldProblem[];
  offered: OfferedToResponses;
}

export const NEW_CONVERSATION = "new";

export function ResponseFields({ settings, problems, offered }: ResponseFieldsProps): JSX.Element {
  const common = { settings, problems };
  const format = textAt(settings.values, "text.format.type");
  return (
    <div class="stack">
      <ChoiceSetting {...common} path="model" label="Model" choices={offered.models.map((each) => [each, each])} />
      <TextSetting {...common} path="instructions" label="Instructions" rows={3} />
      <div class="columns">
        <TextSetting
          {...common}
          path="previous_response_id"
          label="Previous response"
          hint="Set after each response, unless there is a conversation."
          placeholder="resp_…"
        />
        <ChoiceSetting
          {...common}
          path="conversation"
          label="Conversation"
          choices={[["", "none"], [NEW_CONVERSATION, "a new one"], ...offered.conversations]}
          onChange={(value) => {
            settings.set("conversation", value || undefined);
          }}
        />
      </div>
      <Check
        label="In the background"
        isOn={valueAt(settings.values, "background") === true}
        onChange={(isOn) => settings.set("background", isOn || undefined)}
      />
      <FileSearch {...common} stores={offered.stores} />
      <OtherTools {...common} />
      <McpServer settings={settings} />
      <JsonSetting
        {...common}
        path="tools"
        label="All tools"
        hint="Functions are added here. Whoever reads the response answers their calls."
        rows={6}
        placeholder='[{"type": "function", "name": "get_weather", "parameters": {"type": "object", "properties": {}}}]'
      />
      <div class="columns">
        <ChoiceSetting
          {...common}
          path="reasoning.effort"
          label="Reasoning"
          choices={[
            ["", "default"],
            ...["none", "minimal", "low", "medium", "high"].map((each) => [each, each] as const),
          ]}
          onChange={(value) => settings.set("reasoning", value ? { effort: value, summary: "auto" } : undefined)}
        />
        <ChoiceSetting
          {...common}
          path="text.format.type"
          label="Response format"
          choices={[
            ["", "text"],
            ["json_object", "JSON"],
            ["json_schema", "JSON with a schema"],
          ]}
          onChange={(type) => settings.set("text.format", type ? formatOf(type) : undefined)}
        />
        <NumberSetting {...common} path="temperature" label="Temperature" min={0} max={2} step={0.1} />
        <NumberSetting {...common} path="max_output_tokens" label="Maximum output tokens" min={16} />
      </div>
      {format === "json_schema" && (
        <JsonSetting {...common} path="text.format.schema" label="JSON schema of answers" rows={6} />
      )}
    </div>
  );
}

function formatOf(type: string): object {
  return type === "json_schema" ? { type, name: "answer", schema: { type: "object", properties: {} } } : { type };
}

type PartProps = Omit<ResponseFieldsProps, "offered">;

/** Replace the tools of a type; undefined removes them. */
function setTool(settings: Settings, type: string, tool: object | undefined): void {
  const others = listAt(settings.values, "tools").filter((each) => !isRecord(each) || each["type"] !== type);
  const next = tool ? [...others, tool] : others;
  settings.set("tools", next.length > 0 ? next : undefined);
}

function toolOf(settings: Settings, type: string): Record<string, unknown> | undefined {
  return listAt(settings.values, "tools")
    .filter(isRecord)
    .find((each) => each["type"] === type);
}

function FileSearch({ settings, problems, stores }: PartProps & { stores: OfferedToResponses["stores"] }): JSX.Element {
  const ids = toolOf(settings, "file_search")?.["vector_store_ids"];
  const chosen = Array.isArray(ids) ? ids.map(String) : [];
  const toggle = (id: string, isOn: boolean) => {
    const next = isOn ? [...chosen, id] : chosen.filter((each) => each !== id);
    setTool(settings, "file_search", next.length > 0 ? { type: "file_search", vector_store_ids: next } : undefined);
  };
  return (
    <Group label="Search in vector stores" error={problemAt(problems, "tools")}>
      {stores.length === 0 && <p class="hint">There are no vector stores yet.</p>}
      {stores.map(([id, name]) => (
        <Check
          key={id}
          label={<StoreName id={id} name={name} />}
          isOn={chosen.includes(id)}
          onChange={(isOn) => toggle(id, isOn)}
        />
      ))}
    </Group>
  );
}

/** Names of stores are not unique. */
function StoreName({ id, name }: { id: string; name: string }): JSX.Element {
  return (
    <>
      <bdi>{cut(name, 100)}</bdi> <span class="hint mono">{id}</span>
    </>
  );
}

const TOOLS: readonly [string, string, object][] = [
  ["web_search", "Web search", { type: "web_search" }],
  ["image_generation", "Images", { type: "image_generation" }],
  ["code_interpreter", "Code", { type: "code_interpreter", container: { type: "auto" } }],
];

function OtherTools({ settings }: PartProps): JSX.Element {
  return (
    <Group label="Other tools">
      {TOOLS.map(([type, name, tool]) => (
        <Check
          key={type}
          label={name}
          isOn={toolOf(settings, type) !== undefined}
          onChange={(isOn) => setTool(settings, type, isOn ? tool : undefined)}
        />
      ))}
    </Group>
  );
}

function McpServer({ settings }: { settings: Settings }): JSX.Element {
  const [label, setLabel] = useState("");
  const [url, setUrl] = useState("");
  const add = () => {
    const tool = { type: "mcp", server_label: label.trim(), server_url: url.trim(), require_approval: "always" };
    settings.set("tools", [...listAt(settings.values, "tools"), tool]);
    setLabel("");
    setUrl("");
  };
  return (
    <Group label="MCP server" hint="Each of its calls waits for your approval.">
      <div class="columns">
        <TextField label="Label" value={label} onText={setLabel} />
        <TextField label="Address" type="url" placeholder="https://…/mcp" value={url} onText={setUrl} />
      </div>
      <Button disabled={!label.trim() || !url.trim()} onClick={add}>
        Add the server
      </Button>
    </Group>
  );
}
