import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { addressOf, post, type Schemas } from "../../api";
import { Button } from "../../components/button";
import { CopyAs, CopyButton } from "../../components/copy";
import { Field } from "../../components/field";
import { ErrorState } from "../../components/states";
import { Step } from "../../components/step";
import { Time } from "../../components/values";
import { type ApiError, toApiError } from "../../errors";

export type Agent = Schemas["Agent"];

interface AgentStepProps {
  models: readonly string[];
  agent: Agent | null;
  onMade: (agent: Agent) => void;
}

export function AgentStep({ models, agent, onMade }: AgentStepProps): JSX.Element {
  return (
    <Step number={1} title="Make an agent" isDone={agent !== null}>
      {agent ? <MadeAgent agent={agent} /> : <AgentForm models={models} onMade={onMade} />}
    </Step>
  );
}

function AgentForm({ models, onMade }: { models: readonly string[]; onMade: (agent: Agent) => void }): JSX.Element {
  const [name, setName] = useState("First agent");
  const [model, setModel] = useState(models[0] ?? "");
  const [instructions, setInstructions] = useState("Answer briefly.");
  const [error, setError] = useState<ApiError | null>(null);
  const [isBusy, setBusy] = useState(false);
  const agentConfig = { name: name.trim() || null, model, instructions } as Schemas["NewAgentConfig"];
  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    setError(null);
    try {
      const { agent_id } = await post("/v1/agents", { agent_config: agentConfig });
      const made = { agent_id, agent_config: agentConfig, created_at: new Date().toISOString() };
      onMade(made as unknown as Agent);
    } catch (failure) {
      setError(toApiError(failure));
    } finally {
      setBusy(false);
    }
  };
  return (
    <form class="stack" onSubmit={(event) => void submit(event)}>
      <div class="columns">
        <Field label="Name">
          {(ids) => <input {...ids} value={name} maxLength={200} onInput={(e) => setName(e.currentTarget.value)} />}
        </Field>
        <Field label="Model" error={models.length === 0 ? "This server has no model that answers." : ""}>
          {(ids) => (
            <select {...ids} value={model} onChange={(e) => setModel(e.currentTarget.value)}>
              {models.map((each) => (
                <option key={each}>{each}</option>
              ))}
            </select>
          )}
        </Field>
      </div>
      <Field label="Instructions" hint="The model reads them before each conversation.">
        {(ids) => (
          <textarea {...ids} rows={2} value={instructions} onInput={(e) => setInstructions(e.currentTarget.value)} />
        )}
      </Field>
      {error && <ErrorState error={error} />}
      <div class="actions">
        <Button type="submit" kind="primary" busy={isBusy} disabled={!model}>
          Make the agent
        </Button>
        <CopyAs snippet={{ method: "POST", url: addressOf("/v1/agents").href, body: { agent_config: agentConfig } }} />
      </div>
    </form>
  );
}

function MadeAgent({ agent }: { agent: Agent }): JSX.Element {
  const { name, model } = agent.agent_config;
  return (
    <dl class="facts">
      <dt>Agent</dt>
      <dd>{name || "Without a name"}</dd>
      <dt>Model</dt>
      <dd class="mono">{model}</dd>
      <dt>Id</dt>
      <dd class="with-action">
        <code>{agent.agent_id}</code>
        <CopyButton text={agent.agent_id} what="id of the agent" />
      </dd>
      <dt>Made</dt>
      <dd>
        <Time at={agent.created_at} />
      </dd>
    </dl>
  );
}
