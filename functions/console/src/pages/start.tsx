/** Three steps from an empty system to an agent that answers, with a document. */
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { get } from "../api";
import { EmptyState, ErrorState, Skeleton } from "../components/states";
import { type ApiError, toApiError } from "../errors";
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
  const [found, setFound] = useState<Found | null>(null);
  const [error, setError] = useState<ApiError | null>(null);
  const [hasAnswer, setAnswer] = useState(false);
  const load = () => {
    setError(null);
    readSystem().then(setFound, (failure: unknown) => setError(toApiError(failure)));
  };
  const isAllowed = may("use");
  useEffect(() => {
    if (isAllowed) load();
  }, [isAllowed]);
  return (
    <div class="page">
      <header class="page-head">
        <h1>Start</h1>
        <p class="lead">Make an agent, talk to it, and give it something to read.</p>
      </header>
      {error && <ErrorState error={error} onRetry={load} />}
      {!isAllowed && (
        <EmptyState title="These steps need the scope use">
          Your key does not have it. Sign in with another one.
        </EmptyState>
      )}
      {isAllowed && !error && !found && <Skeleton lines={6} />}
      {found && (
        <ol class="steps">
          <AgentStep models={found.models} agent={found.agent} onMade={(agent) => setFound({ ...found, agent })} />
          <HelloStep agent={found.agent} isDone={hasAnswer} onAnswer={() => setAnswer(true)} />
          <DocumentStep store={found.store} onMade={(store) => setFound({ ...found, store })} />
        </ol>
      )}
      <p class="page-foot hint">Stint {config.value?.version}</p>
    </div>
  );
}

/** Read the models, and what an earlier visit has made. */
async function readSystem(): Promise<Found> {
  const [models, agents, stores] = await Promise.all([
    get("/v1/models"),
    get("/v1/agents", { query: { limit: 1 } }),
    get("/v1/vector_stores", { query: { limit: 1 } }),
  ]);
  const names = models.data.filter((model) => model.model_type === "llm").map((model) => model.identifier);
  return { models: names, agent: agents.data[0] ?? null, store: stores.data[0] ?? null };
}
