/** A file in a vector store: its state, attributes, chunks and text. */
import type { JSX } from "preact";
import { useCallback } from "preact/hooks";
import { addressOf, get, post } from "../../api";
import { ConfirmButton } from "../../components/confirm-button";
import { CopyAs, CopyButton } from "../../components/copy";
import { JsonView } from "../../components/json-view";
import { ErrorState, Skeleton } from "../../components/states";
import { Badge, Time } from "../../components/values";
import { formatBytes, formatCount, formatName } from "../../format";
import { useResource } from "../../resource";
import { Link, type PageProps } from "../../router";
import { mayWrite, reasonOf, STORE_FILE, STORE_FILES, type StoreFile } from "./api";
import { Attributes } from "./attributes";
import { DocumentChunks } from "./document-chunks";
import { DocumentText } from "./document-text";
import { useFollow } from "./follow";
import { storePath } from "./head";

export default function DocumentPage({ params }: PageProps): JSX.Element {
  const at = { vector_store_id: params["store"]!, file_id: params["file"]! };
  const load = useCallback(
    (signal: AbortSignal) => get(STORE_FILE, { params: at, signal }),
    [at.vector_store_id, at.file_id],
  );
  const file = useResource(load);
  const isBusy = file.value?.status === "in_progress";
  const problem = useFollow(isBusy ? [at.file_id] : [], async (_, signal) => file.set(await load(signal)));
  return (
    <div class="page">
      <header class="page-head">
        <Link to={storePath(at.vector_store_id)} class="back">
          Files of the vector store
        </Link>
        <h1 class="wrap">{file.value ? formatName(file.value.filename) || "Without a name" : "File"}</h1>
      </header>
      {file.error ? (
        <ErrorState error={file.error} onRetry={file.reload} />
      ) : file.value ? (
        <Facts file={file.value} onChange={file.set} />
      ) : (
        <Skeleton lines={5} />
      )}
      {problem && <p class="hint">The state cannot be read now: {problem.message} Trying again …</p>}
      {isBusy && <p class="hint">The chunks are shown as soon as the file is ingested.</p>}
      {file.value?.status === "completed" && (
        <>
          <DocumentChunks at={at} />
          <DocumentText at={at} />
        </>
      )}
    </div>
  );
}

function Facts({ file, onChange }: { file: StoreFile; onChange: (file: StoreFile) => void }): JSX.Element {
  const at = { vector_store_id: file.vector_store_id, file_id: file.id };
  const again = async () => {
    // A file with equal settings is ingested again if it has failed.
    const params = { vector_store_id: file.vector_store_id };
    const body = { file_id: file.id, attributes: file.attributes };
    onChange(await post(STORE_FILES, body, { params }));
  };
  return (
    <section class="card stack" aria-label="The file">
      <dl class="facts">
        <dt>Status</dt>
        <dd aria-live="polite">
          <Badge status={file.status} />
        </dd>
        {file.last_error && <dt>Reason</dt>}
        {file.last_error && (
          <dd>
            <span class="field-error">{reasonOf(file)}</span> <span class="hint">{file.last_error.code}</span>
          </dd>
        )}
        <dt>Id</dt>
        <dd class="with-action">
          <code>{file.id}</code>
          <CopyButton text={file.id} what="id of the file" />
        </dd>
        <dt>Size</dt>
        <dd class="number">{formatBytes(file.usage_bytes)}</dd>
        <dt>Chunks</dt>
        <dd>{chunkingOf(file)}</dd>
        <dt>Added</dt>
        <dd>
          <Time at={file.created_at} />
        </dd>
      </dl>
      <Attributes file={file} onChange={onChange} />
      <details>
        <summary>JSON</summary>
        <JsonView value={file} label="File" />
      </details>
      <div class="actions">
        <CopyAs snippet={{ method: "GET", url: addressOf(STORE_FILE, at).href }} />
        {mayWrite() && (file.status === "failed" || file.status === "cancelled") && (
          <ConfirmButton
            label="Ingest again"
            kind="quiet"
            title="Ingest this file again?"
            onConfirm={again}
            text="It is read from the beginning."
          />
        )}
      </div>
    </section>
  );
}

function chunkingOf({ chunking_strategy: strategy }: StoreFile): string {
  if (strategy.type === "auto") return "Up to 800 tokens, of which 400 are also in the one before";
  if (strategy.type !== "static" || !("static" in strategy)) return "As they were inserted";
  const { max_chunk_size_tokens: size, chunk_overlap_tokens: overlap } = strategy.static;
  return `Up to ${formatCount(size)} tokens, of which ${formatCount(overlap)} are also in the one before`;
}
