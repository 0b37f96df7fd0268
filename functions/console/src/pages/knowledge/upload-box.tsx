import type { JSX } from "preact";
import { Button } from "../../components/button";
import { DropArea } from "../../components/drop-area";
import { formatBytes, formatCount, formatName } from "../../format";
import { LARGEST_DOCUMENT } from "../../upload";
import type { Upload, Uploads } from "./uploads";

const SHOWN = 50;

interface UploadBoxProps {
  uploads: Uploads;
  /** The files become documents, which have a smaller limit. */
  isForStore: boolean;
}

/** A place to drop files on, and those that are on their way. */
export function UploadBox({ uploads, isForStore }: UploadBoxProps): JSX.Element {
  return (
    <div class="stack">
      <DropArea label="Files to upload" action="Choose files" isMultiple onFiles={uploads.add}>
        <p class="hint">
          {isForStore
            ? "Drop files here: text, Markdown, HTML, JSON, PDF, DOCX, PPTX or XLSX of up to 50 MB."
            : "Drop files of up to 512 MB here."}
        </p>
      </DropArea>
      {uploads.all.length > 0 && (
        <ul class="uploads" aria-label="Uploads">
          {uploads.all.slice(0, SHOWN).map((upload) => (
            <UploadRow key={upload.id} upload={upload} uploads={uploads} isForStore={isForStore} />
          ))}
        </ul>
      )}
      {uploads.all.length > SHOWN && <p class="hint">and {formatCount(uploads.all.length - SHOWN)} more</p>}
    </div>
  );
}

function UploadRow({ upload, uploads, isForStore }: UploadBoxProps & { upload: Upload }): JSX.Element {
  const { id, file, state, sent, error } = upload;
  const name = formatName(file.name);
  const isLarge = isForStore && file.size > LARGEST_DOCUMENT;
  return (
    <li class="upload">
      <span>
        <strong>{name}</strong> <span class="hint number">{formatBytes(file.size)}</span>
      </span>
      <span class="upload-actions">
        {state === "failed" && error?.status !== 400 && error?.status !== 413 && (
          <Button kind="quiet" aria-label={`Try again ${name}`} onClick={() => uploads.retry(id)}>
            Try again
          </Button>
        )}
        <Button
          kind="quiet"
          aria-label={`${isOver(upload) ? "Hide" : "Stop"} ${name}`}
          onClick={() => uploads.drop(id)}
        >
          {isOver(upload) ? "Hide" : "Stop"}
        </Button>
      </span>
      {!isOver(upload) && (
        <progress max={Math.max(file.size, 1)} value={Math.min(sent, file.size)} aria-label={`Upload of ${name}`} />
      )}
      <span class={state === "failed" ? "field-error" : "hint"} role={state === "failed" ? "alert" : undefined}>
        {wordsOf(upload)}
        {isLarge && state !== "failed" && " A document has at most 50 MB: this one cannot be ingested."}
        {error?.message}
      </span>
    </li>
  );
}

function isOver({ state }: Upload): boolean {
  return state === "done" || state === "failed";
}

function wordsOf({ state, sent, file }: Upload): string {
  if (state === "waiting") return "Waiting";
  if (state === "sending") return `${formatBytes(Math.min(sent, file.size))} of ${formatBytes(file.size)} sent`;
  if (state === "finishing") return "Sent. The server finishes …";
  return state === "done" ? "Uploaded" : "";
}
