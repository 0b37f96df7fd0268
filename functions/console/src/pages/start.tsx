/** Three steps from an empty system to an agent that answers, with a document. */
import type { JSX } from "preact";
import { useCallback, useState } from "preact/hooks";
import { get } from "../api";
import { PageHead } from "../components/head";
import { EmptyState, ErrorState, Skeleton } from "../components/states";
import { readModelNames } from "../models";
import { useResource } from "../resource";
import { config, may } from "../session";
import { type Agent, AgentStep } from "./start/agent-step";
import { DocumentStep, type Store } from "./start/document-step";
import { HelloStep } from "./start/hello-step";

interface Found {
  models: readonly string[];
  agent: Agent | null;
  store: Store | null;
}

export default function StartPage(): JSX.Element {
  const isAllowed = may("use");
  const load = useCallback(async (signal: AbortSignal) => (isAllowed ? readSystem(signal) : null), [isAllowed]);
  const { value: found, error, reload, set } = useResource(load);
  const [hasAnswer, setAnswer] = useState(false);
  return (
    <div class="page">
      <PageHead title="Start" lead="Make an agent, talk to it, and give it something to read." />
      {error && <ErrorState error={error} onRetry={reload} />}
      {!isAllowed && (
        <EmptyState title="These steps need the scope use">
          Your key does not have it. Sign in with another one.
        </EmptyState>
      )}
      {isAllowed && !error && !found && <Skeleton lines={6} />}
      {found && (
        <ol class="steps">
          <AgentStep models={found.models} agent={found.agent} onMade={(agent) => set({ ...found, agent })} />
          <HelloStep agent={found.agent} isDone={hasAnswer} onAnswer={() => setAnswer(true)} />
          <DocumentStep store={found.store} onMade={(store) => set({ ...found, store })} />
        </ol>
      )}
      <p class="hint">Stint {config.value?.version}</p>
    </div>
  );
}

/** Read the models, and what an earlier visit has made. */
async function readSystem(signal: AbortSignal): Promise<Found> {
  const [models, agents, stores] = await Promise.all([
    readModelNames(signal),
    get("/v1/agents", { query: { limit: 1 }, signal }),
    get("/v1/vector_stores", { query: { limit: 1 }, signal }),
  ]);
  return { models, agent: agents.data[0] ?? null, store: stores.data[0] ?? null };
}
