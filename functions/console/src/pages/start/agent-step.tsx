import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { addressOf, post, type Schemas } from "../../api";
import { useAction } from "../../components/action";
import { CopyAs } from "../../components/copy";
import { Facts, Id } from "../../components/facts";
import { ChoiceField, TextField } from "../../components/field";
import { Form } from "../../components/form";
import { Step } from "../../components/step";
import { Time } from "../../components/values";

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
  const agentConfig = { name: name.trim() || null, model, instructions } as Schemas["NewAgentConfig"];
  const body = { agent_config: agentConfig };
  const action = useAction(async () => {
    const { agent_id } = await post("/v1/agents", body);
    onMade({ ...body, agent_id, created_at: new Date().toISOString() } as unknown as Agent);
  });
  return (
    <Form
      action={action}
      label="Make the agent"
      disabled={!model}
      beside={<CopyAs snippet={{ method: "POST", url: addressOf("/v1/agents").href, body }} />}
    >
      <div class="columns">
        <TextField label="Name" maxLength={200} value={name} onText={setName} />
        <ChoiceField
          label="Model"
          error={models.length === 0 ? "This server has no model that answers." : ""}
          value={model}
          choices={models}
          onChoose={setModel}
        />
      </div>
      <TextField
        label="Instructions"
        hint="The model reads them before each conversation."
        rows={2}
        value={instructions}
        onText={setInstructions}
      />
    </Form>
  );
}

function MadeAgent({ agent }: { agent: Agent }): JSX.Element {
  const { name, model } = agent.agent_config;
  return (
    <Facts
      rows={[
        ["Agent", name || "Without a name"],
        ["Model", <span class="mono">{model}</span>],
        ["Id", <Id id={agent.agent_id} of="the agent" />],
        ["Created", <Time at={agent.created_at} />],
      ]}
    />
  );
}
