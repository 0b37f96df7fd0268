import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { addressOf, get, post, type Schemas, send } from "../../api";
import { useAction } from "../../components/action";
import { CopyAs } from "../../components/copy";
import { DropArea } from "../../components/drop-area";
import { Facts, Id } from "../../components/facts";
import { Form } from "../../components/form";
import { ErrorState } from "../../components/states";
import { Step } from "../../components/step";
import { Badge, Time } from "../../components/values";
import { ApiError, toApiError } from "../../errors";
import { formatBytes, formatCount } from "../../format";
import { Link } from "../../router";
import { may } from "../../session";
import { wait } from "../../stream";

export type Store = Schemas["VectorStore"];

/** API Gateway refuses larger requests. */
const LARGEST = 4_400_000;
const SAMPLE = new File(
  ["# Opening hours\n\nThe shop is open from 9 to 17 on weekdays, and from 10 to 14 on Saturdays.\n"],
  "opening-hours.md",
  { type: "text/markdown" },
);
const PAUSE = 700;

interface DocumentStepProps {
  store: Store | null;
  onMade: (store: Store) => void;
}

export function DocumentStep({ store, onMade }: DocumentStepProps): JSX.Element {
  const isDone = store !== null && store.file_counts.completed > 0;
  return (
    <Step number={3} title="Add a document" isDone={isDone}>
      {store && <MadeStore store={store} onChange={onMade} />}
      {!store && may("knowledge:write") && <DocumentForm onMade={onMade} />}
      {!store && !may("knowledge:write") && (
        <p class="hint">A key with the scope knowledge:write adds documents. Yours does not have it.</p>
      )}
    </Step>
  );
}

function DocumentForm({ onMade }: { onMade: (store: Store) => void }): JSX.Element {
  const [file, setFile] = useState<File>(SAMPLE);
  const action = useAction(async () => {
    if (file.size > LARGEST) {
      const size = formatBytes(file.size);
      throw new ApiError(413, "too_large", `${file.name} has ${size}. Choose a file of up to ${formatBytes(LARGEST)}.`);
    }
    onMade(await createStore(file));
  });
  const snippet = {
    method: "POST",
    url: addressOf("/v1/files").href,
    body: { purpose: "assistants" },
    file: file.name,
  };
  return (
    <Form action={action} label="Add the document" beside={<CopyAs snippet={snippet} />}>
      <p>A vector store keeps documents that agents search.</p>
      <DropArea label="File" action="Choose a file" onFiles={([chosen]) => chosen && setFile(chosen)}>
        <p>
          <strong>{file.name}</strong> <span class="hint">{formatBytes(file.size)}</span>
        </p>
        <p class="hint">{file === SAMPLE ? "A sample. Drop another file here, or" : "Drop another file here, or"}</p>
      </DropArea>
    </Form>
  );
}

async function createStore(file: File): Promise<Store> {
  const form = new FormData();
  form.set("purpose", "assistants");
  form.set("file", file);
  const uploaded = (await (await send("POST", "/v1/files", form)).json()) as Schemas["FileObject"];
  return post("/v1/vector_stores", { name: "First documents", file_ids: [uploaded.id] });
}

function MadeStore({ store, onChange }: { store: Store; onChange: (store: Store) => void }): JSX.Element {
  const [error, setError] = useState<ApiError | null>(null);
  const [attempt, setAttempt] = useState(0);
  const isBusy = store.status === "in_progress";
  useEffect(() => {
    if (!isBusy) return;
    const stop = new AbortController();
    setError(null);
    waitForStore(store.id, onChange, stop.signal).catch((failure: unknown) => {
      const { code } = toApiError(failure);
      if (code !== "aborted") setError(toApiError(failure));
    });
    return () => stop.abort();
  }, [store.id, isBusy, attempt]);
  const { completed, failed, total } = store.file_counts;
  return (
    <div class="stack">
      <Facts
        rows={[
          ["Vector store", store.name || "Without a name"],
          [
            "Documents",
            <>
              <Badge status={store.status} /> {formatCount(completed)} of {formatCount(total)} can be searched
              {failed > 0 && `, ${formatCount(failed)} failed`}
            </>,
          ],
          ["Id", <Id id={store.id} of="the vector store" />],
          ["Created", <Time at={store.created_at} />],
        ]}
      />
      {completed > 0 && (
        <p>
          Ask about it: open a{" "}
          <Link to={`/responses/new?store=${encodeURIComponent(store.id)}`}>new response that searches it</Link>, and
          write, for example, <code>Use file search for "When is the shop open?"</code>
        </p>
      )}
      {error && <ErrorState error={error} onRetry={() => setAttempt(attempt + 1)} />}
    </div>
  );
}

/** Read a store until its files have been ingested. */
async function waitForStore(id: string, onChange: (store: Store) => void, signal: AbortSignal): Promise<void> {
  for (;;) {
    await wait(PAUSE, signal);
    const store = await get("/v1/vector_stores/{vector_store_id}", { params: { vector_store_id: id }, signal });
    if (store.status !== "in_progress") {
      onChange(store);
      return;
    }
  }
}
