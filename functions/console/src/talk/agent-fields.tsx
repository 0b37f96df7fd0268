/** The form of an agent. */
import type { JSX } from "preact";
import { Check } from "../components/check";
import { type FieldProblem, isRecord } from "../errors";
import { BUSY_WORDS, DEFAULT_BUSY } from "./busy-field";
import {
  ChoiceSetting,
  Group,
  JsonField,
  JsonSetting,
  NamesSetting,
  NumberSetting,
  TextSetting,
} from "./setting-fields";
import { listAt, problemAt, type Settings, textAt, valueAt } from "./settings";

/** What a form offers. */
export interface Offered {
  models: readonly string[];
  toolgroups: readonly string[];
  shields: readonly string[];
}

interface AgentFieldsProps {
  settings: Settings;
  problems: readonly FieldProblem[];
  offered: Offered;
}

const PREFIX = "agent_config";

export function AgentFields({ settings, problems, offered }: AgentFieldsProps): JSX.Element {
  const common = { settings, problems, prefix: PREFIX };
  return (
    <div class="stack">
      <div class="columns">
        <TextSetting {...common} path="name" label="Name" />
        <ChoiceSetting {...common} path="model" label="Model" choices={offered.models.map((each) => [each, each])} />
      </div>
      <TextSetting
        {...common}
        path="instructions"
        label="Instructions"
        hint="The model reads them before each conversation."
        rows={4}
        keepsEmpty
      />
      <Toolgroups settings={settings} problems={problems} names={offered.toolgroups} />
      <JsonSetting
        {...common}
        path="client_tools"
        label="Client tools"
        hint="A list. Whoever talks to the agent answers the calls of these tools."
        placeholder='[{"name": "get_weather", "description": "…", "parameters": [{"name": "city", "parameter_type": "string", "description": "…"}]}]'
      />
      <div class="columns">
        <NamesSetting
          {...common}
          path="input_shields"
          label="Input shields"
          names={offered.shields}
          empty="This server has no shields."
        />
        <NamesSetting
          {...common}
          path="output_shields"
          label="Output shields"
          names={offered.shields}
          empty="This server has no shields."
        />
      </div>
      <ResponseFormat settings={settings} problems={problems} />
      <Sampling settings={settings} problems={problems} />
      <div class="columns">
        <NumberSetting {...common} path="max_infer_iters" label="Maximum model calls per turn" min={1} max={100} />
        <ChoiceSetting
          {...common}
          path="when_busy"
          label="When a message arrives during a turn"
          choices={[["", DEFAULT_BUSY], ...BUSY_WORDS.map(([each, words]) => [each, `${each}: ${words}`] as const)]}
        />
      </div>
      <Check
        label="Keep sessions until they are deleted"
        isOn={valueAt(settings.values, "enable_session_persistence") === true}
        onChange={(isOn) => settings.set("enable_session_persistence", isOn || undefined)}
      />
    </div>
  );
}

type PartProps = Omit<AgentFieldsProps, "offered">;

/** A toolgroup is its name, or an object with its name, its arguments, and the calls that wait for approval. */
function Toolgroups({ settings, problems, names }: PartProps & { names: readonly string[] }): JSX.Element {
  const chosen = listAt(settings.values, "toolgroups");
  const nameOf = (each: unknown) => String(isRecord(each) ? each["name"] : each);
  const all = [...new Set([...names, ...chosen.map(nameOf)])];
  const replace = (name: string, by: unknown) => {
    const isNew = !chosen.some((each) => nameOf(each) === name);
    const next = isNew ? [...chosen, by] : chosen.map((each) => (nameOf(each) === name ? by : each));
    const kept = next.filter((each) => each !== undefined);
    settings.set("toolgroups", kept.length > 0 ? kept : undefined);
  };
  return (
    <Group label="Toolgroups" error={problemAt(problems, `${PREFIX}.toolgroups`)}>
      {all.slice(0, 200).map((name) => {
        const own = chosen.find((each) => nameOf(each) === name);
        const args = isRecord(own) ? own["args"] : undefined;
        const approval = isRecord(own) ? (own["require_approval"] ?? undefined) : undefined;
        // What the form does not show of a toolgroup stays as it is.
        const change = (changes: Record<string, unknown>) =>
          replace(name, simplify({ ...toObject(own, name), ...changes }));
        return (
          <div key={name}>
            <Check label={name} isOn={own !== undefined} onChange={(isOn) => replace(name, isOn ? name : undefined)} />
            {own !== undefined && (
              <Check
                label={`Ask before calls of ${name}`}
                isOn={approval !== undefined && approval !== "never"}
                onChange={(isOn) => change({ require_approval: isOn ? "always" : undefined })}
              />
            )}
            {own !== undefined && (
              <JsonField
                label={`Arguments of ${name}`}
                error=""
                rows={4}
                placeholder={name === "builtin::rag" ? '{"vector_db_ids": ["…"]}' : "{}"}
                value={args}
                onChange={(next) => change({ args: next })}
              />
            )}
          </div>
        );
      })}
    </Group>
  );
}

function toObject(toolgroup: unknown, name: string): Record<string, unknown> {
  return isRecord(toolgroup) ? toolgroup : { name };
}

/** Return a toolgroup as its name if that says all. */
function simplify(toolgroup: Record<string, unknown>): unknown {
  const given = Object.entries(toolgroup).filter(([, value]) => value !== undefined);
  return given.length === 1 ? toolgroup["name"] : Object.fromEntries(given);
}

function ResponseFormat({ settings, problems }: PartProps): JSX.Element {
  const type = textAt(settings.values, "response_format.type");
  const common = { settings, problems, prefix: PREFIX };
  const choose = (value: string) =>
    settings.set(
      "response_format",
      value ? { type: value, json_schema: { type: "object", properties: {} } } : undefined,
    );
  return (
    <>
      <ChoiceSetting
        {...common}
        path="response_format.type"
        label="Response format"
        choices={[
          ["", "text"],
          ["json_schema", "JSON with a schema"],
        ]}
        onChange={choose}
      />
      {type === "json_schema" && (
        <JsonSetting {...common} path="response_format.json_schema" label="JSON schema of answers" rows={6} />
      )}
    </>
  );
}

function Sampling({ settings, problems }: PartProps): JSX.Element {
  const common = { settings, problems, prefix: PREFIX };
  const type = textAt(settings.values, "sampling_params.strategy.type");
  const initial: Readonly<Record<string, unknown>> = {
    greedy: { type: "greedy" },
    top_p: { type: "top_p", temperature: 1, top_p: 0.95 },
    top_k: { type: "top_k", top_k: 40 },
  };
  return (
    <Group label="Sampling">
      <div class="columns">
        <ChoiceSetting
          {...common}
          path="sampling_params.strategy.type"
          label="Strategy"
          choices={[
            ["", "default"],
            ["greedy", "greedy"],
            ["top_p", "top p"],
            ["top_k", "top k"],
          ]}
          onChange={(value) => settings.set("sampling_params.strategy", initial[value])}
        />
        {type === "top_p" && (
          <>
            <NumberSetting
              {...common}
              path="sampling_params.strategy.temperature"
              label="Temperature"
              min={0}
              max={2}
              step={0.1}
            />
            <NumberSetting
              {...common}
              path="sampling_params.strategy.top_p"
              label="Top p"
              min={0}
              max={1}
              step={0.05}
            />
          </>
        )}
        {type === "top_k" && <NumberSetting {...common} path="sampling_params.strategy.top_k" label="Top k" min={1} />}
        <NumberSetting {...common} path="sampling_params.max_tokens" label="Maximum output tokens" min={0} />
        <NumberSetting
          {...common}
          path="sampling_params.repetition_penalty"
          label="Repetition penalty"
          min={0}
          max={2}
          step={0.1}
        />
      </div>
    </Group>
  );
}
