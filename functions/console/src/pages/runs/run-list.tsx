import type { JSX } from "preact";
import { useCallback, useEffect, useState } from "preact/hooks";
import { get, type Schemas } from "../../api";
import { Button } from "../../components/button";
import { Table } from "../../components/list";
import { EmptyState } from "../../components/states";
import { Time } from "../../components/values";
import { formatMilliseconds } from "../../format";
import { useResource } from "../../resource";
import { type ApiKey, nameOfKey, readKeys, shortId } from "../steer/key-names";
import type { Choice, Target } from "./stop-dialog";
import type { Stop } from "./stop-list";

type Run = Schemas["RunningRun"];

const PAGE = 50;
const REFRESH_SECONDS = 10;

interface RunListProps {
  tenant: string;
  stops: readonly Stop[];
  onStop: (target: Target) => void;
}

/** The runs, read again every 10 s while the page can be seen. */
export function RunList({ tenant, stops, onStop }: RunListProps): JSX.Element {
  const [shown, setShown] = useState(PAGE);
  const load = useCallback(
    (signal: AbortSignal) => get("/v1/admin/runs", { query: { limit: shown, ...(tenant && { tenant }) }, signal }),
    [tenant, shown],
  );
  const runs = useResource(load);
  const keys = useResource(readKeys).value ?? [];
  useEffect(() => {
    const timer = setInterval(() => document.hidden || runs.reload(), REFRESH_SECONDS * 1000);
    return () => clearInterval(timer);
  }, [runs.reload]);
  const paged = {
    ...runs,
    items: runs.value?.data ?? [],
    hasMore: runs.value?.has_more ?? false,
    loadMore: () => (runs.error ? runs.reload() : setShown(shown + PAGE)),
  };
  return (
    <section class="stack" aria-labelledby="runs">
      <header class="section-head">
        <h2 id="runs" tabIndex={-1}>
          Runs
        </h2>
        <Button onClick={runs.reload}>Refresh</Button>
      </header>
      <Table
        path="/v1/admin/runs"
        caption="Running turns and responses, the newest first"
        columns={[
          { title: "Run", cell: (run: Run) => <Names run={run} /> },
          { title: "Model", cell: (run: Run) => run.model },
          { title: "Key", cell: (run: Run) => <bdi>{keyOf(run, keys)}</bdi> },
          { title: "Duration", cell: (run: Run) => <Age run={run} /> },
          {
            title: "Actions",
            cell: (run: Run) =>
              stops.some((stop) => stop.id === run.id) ? (
                <span class="badge badge-busy">stopping</span>
              ) : (
                <Button
                  kind="danger"
                  onClick={() => onStop({ choices: choicesOf(run, keys) })}
                  aria-label={`Stop ${run.kind} ${run.id}`}
                >
                  Stop …
                </Button>
              ),
          },
        ]}
        paged={paged}
        keyOf={(run) => run.id}
        empty={
          <EmptyState title="Nothing is running">
            Runs appear here after 10 seconds, and disappear when they end.
          </EmptyState>
        }
      />
    </section>
  );
}

function Names({ run }: { run: Run }): JSX.Element {
  const parts = [
    run.session_id && `session ${run.session_id}`,
    run.conversation_id && `conversation ${run.conversation_id}`,
    run.background && "in the background",
  ].filter((part) => typeof part === "string" && part);
  return (
    <div class="two-lines">
      <span>
        <strong>{run.kind === "turn" ? "Turn" : "Response"}</strong> <code>{run.id}</code>
      </span>
      {parts.map((part) => (
        <span key={part} class="hint">
          {part}
        </span>
      ))}
    </div>
  );
}

function Age({ run }: { run: Run }): JSX.Element {
  return (
    <div class="two-lines">
      <span class="number">{formatMilliseconds(Math.max(0, Date.now() - run.began_at * 1000))}</span>
      <span class="hint">
        since <Time at={run.began_at} />
      </span>
    </div>
  );
}

function keyOf(run: Run, keys: readonly ApiKey[]): string {
  if (!run.key_id) return "None";
  const found = keys.find(({ id }) => id === run.key_id);
  return found ? nameOfKey(found) : shortId(run.key_id);
}

/** Return what can be stopped to end a run, the narrowest first. */
function choicesOf(run: Run, keys: readonly ApiKey[]): readonly Choice[] {
  const found: Choice[] = [{ kind: run.kind, id: run.id, name: `the ${run.kind} ${run.id}` }];
  if (run.session_id) found.push({ kind: "session", id: run.session_id, name: `its session ${run.session_id}` });
  if (run.conversation_id) {
    found.push({ kind: "conversation", id: run.conversation_id, name: `its conversation ${run.conversation_id}` });
  }
  if (run.key_id) found.push({ kind: "key", id: run.key_id, name: `its key, ${keyOf(run, keys)}` });
  return found;
}
