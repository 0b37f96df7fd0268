/** A new agent, or a copy of one. */
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { addressOf, get, post, type Schemas } from "../api";
import { Button } from "../components/button";
import { CopyAs } from "../components/copy";
import { ErrorState, Skeleton } from "../components/states";
import { toast } from "../components/toast";
import { type ApiError, toApiError } from "../errors";
import { fillPath, Link, navigate, place } from "../router";
import { AgentFields, type Offered } from "../talk/agent-fields";
import { SettingsJson } from "../talk/setting-fields";
import { useSettings, type Values } from "../talk/settings";

interface Loaded {
  offered: Offered;
  initial: Values;
}

export default function AgentFormPage(): JSX.Element {
  const copied = place.value.query.get("copy");
  const [loaded, setLoaded] = useState<Loaded | null>(null);
  const [error, setError] = useState<ApiError | null>(null);
  const load = () => {
    setError(null);
    readOffered(copied).then(setLoaded, (failure: unknown) => setError(toApiError(failure)));
  };
  useEffect(load, [copied]);
  return (
    <div class="page page-wide">
      <header class="page-head">
        <p class="hint">
          <Link to="/agents">Agents</Link>
        </p>
        <h1>{copied ? "Copy of an agent" : "New agent"}</h1>
      </header>
      {error && <ErrorState error={error} onRetry={load} />}
      {!error && !loaded && <Skeleton lines={10} />}
      {loaded && <AgentForm key={copied ?? ""} name={copied ?? "new"} {...loaded} />}
    </div>
  );
}

async function readOffered(copied: string | null): Promise<Loaded> {
  const [models, toolgroups, shields, agent] = await Promise.all([
    get("/v1/models"),
    get("/v1/toolgroups"),
    get("/v1/shields"),
    copied ? get("/v1/agents/{agent_id}", { params: { agent_id: copied } }) : null,
  ]);
  const names = models.data.filter((model) => model.model_type === "llm").map((model) => model.identifier);
  const offered = {
    models: names,
    toolgroups: toolgroups.data.map((each) => each.identifier),
    shields: shields.data.map((each) => each.identifier),
  };
  if (!agent) return { offered, initial: { name: "", model: names[0] ?? "", instructions: "Answer briefly." } };
  const { name, ...rest } = agent.agent_config;
  return { offered, initial: { name: name ? `${name} (copy)` : "", ...withoutEmpty(rest) } };
}

/** Leave out what is empty, so that the JSON is short. */
function withoutEmpty(values: object): Values {
  const kept = Object.entries(values).filter(
    ([name, value]) => name === "instructions" || (value !== null && !(Array.isArray(value) && value.length === 0)),
  );
  return Object.fromEntries(kept);
}

function AgentForm({ name, offered, initial }: Loaded & { name: string }): JSX.Element {
  const settings = useSettings(`agent.${name}`, initial);
  const [error, setError] = useState<ApiError | null>(null);
  const [isBusy, setBusy] = useState(false);
  const body = { agent_config: settings.values as unknown as Schemas["NewAgentConfig"] };
  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    setError(null);
    try {
      const { agent_id } = await post("/v1/agents", body);
      settings.forget();
      toast("Agent made");
      navigate(fillPath("/agents/:agent", { agent: agent_id }));
    } catch (failure) {
      setError(toApiError(failure));
      setBusy(false);
    }
  };
  return (
    <form class="stack" noValidate onSubmit={(event) => void submit(event)}>
      <div class="two-sides">
        <AgentFields settings={settings} problems={error?.fields ?? []} offered={offered} />
        <SettingsJson settings={settings} label="JSON of the agent" />
      </div>
      {error && <ErrorState error={error} />}
      <div class="actions">
        <Button type="submit" kind="primary" busy={isBusy} disabled={settings.problem !== ""}>
          Make the agent
        </Button>
        <CopyAs snippet={{ method: "POST", url: addressOf("/v1/agents").href, body }} />
      </div>
    </form>
  );
}
