/** A new agent, or a copy of one. */
import type { JSX } from "preact";
import { useCallback } from "preact/hooks";
import { addressOf, get, post, type Schemas } from "../api";
import { useAction } from "../components/action";
import { CopyAs } from "../components/copy";
import { Form } from "../components/form";
import { PageHead } from "../components/head";
import { ErrorState, Skeleton } from "../components/states";
import { toast } from "../components/toast";
import { readModelNames } from "../models";
import { useResource } from "../resource";
import { fillPath, navigate, place } from "../router";
import { AgentFields, type Offered } from "../talk/agent-fields";
import { SettingsJson } from "../talk/setting-fields";
import { useSettings, type Values } from "../talk/settings";

interface Loaded {
  /** The id of the agent that is copied, or "new". */
  name: string;
  offered: Offered;
  initial: Values;
}

export default function AgentFormPage(): JSX.Element {
  const copied = place.value.query.get("copy");
  const { value: loaded, error, reload } = useResource(useCallback((signal) => readOffered(copied, signal), [copied]));
  return (
    <div class="page page-wide">
      <PageHead title={copied ? "Copy of an agent" : "New agent"} above={[["/agents", "Agents"]]} />
      {error && <ErrorState error={error} onRetry={reload} />}
      {!error && !loaded && <Skeleton lines={10} />}
      {loaded && <AgentForm key={loaded.name} {...loaded} />}
    </div>
  );
}

async function readOffered(copied: string | null, signal: AbortSignal): Promise<Loaded> {
  const [models, toolgroups, shields, agent] = await Promise.all([
    readModelNames(signal),
    get("/v1/toolgroups", { signal }),
    get("/v1/shields", { signal }),
    copied ? get("/v1/agents/{agent_id}", { params: { agent_id: copied }, signal }) : null,
  ]);
  const offered = {
    models,
    toolgroups: toolgroups.data.map((each) => each.identifier),
    shields: shields.data.map((each) => each.identifier),
  };
  if (!agent)
    return { name: "new", offered, initial: { name: "", model: models[0] ?? "", instructions: "Answer briefly." } };
  const { name, ...rest } = agent.agent_config;
  return { name: agent.agent_id, offered, initial: { name: name ? `${name} (copy)` : "", ...withoutEmpty(rest) } };
}

/** Leave out what is empty, so that the JSON is short. */
function withoutEmpty(values: object): Values {
  const kept = Object.entries(values).filter(
    ([name, value]) => name === "instructions" || (value !== null && !(Array.isArray(value) && value.length === 0)),
  );
  return Object.fromEntries(kept);
}

function AgentForm({ name, offered, initial }: Loaded): JSX.Element {
  const settings = useSettings(`agent.${name}`, initial);
  const body = { agent_config: settings.values as unknown as Schemas["NewAgentConfig"] };
  const action = useAction(async () => {
    const { agent_id } = await post("/v1/agents", body);
    settings.forget();
    toast("Agent made");
    navigate(fillPath("/agents/:agent", { agent: agent_id }));
  });
  return (
    <Form
      action={action}
      label="Make the agent"
      noValidate
      disabled={settings.problem !== ""}
      beside={<CopyAs snippet={{ method: "POST", url: addressOf("/v1/agents").href, body }} />}
    >
      <div class="two-sides">
        <AgentFields settings={settings} problems={action.error?.fields ?? []} offered={offered} />
        <SettingsJson settings={settings} label="JSON of the agent" />
      </div>
    </Form>
  );
}
