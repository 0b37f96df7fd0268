import type { JSX } from "preact";
import { useCallback, useState } from "preact/hooks";
import { addressOf, get } from "../../api";
import { CopyAs } from "../../components/copy";
import { LongText } from "../../components/long-text";
import { EmptyState, ErrorState, Skeleton } from "../../components/states";
import { useResource } from "../../resource";
import { STORE_FILE } from "./api";

const CONTENT = `${STORE_FILE}/content` as const;

interface DocumentTextProps {
  at: { vector_store_id: string; file_id: string };
}

/** The text of a file as it was ingested, which is read when it is opened. */
export function DocumentText(props: DocumentTextProps): JSX.Element {
  const [isOpen, setOpen] = useState(false);
  return (
    <details class="part" open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Whole text</summary>
      {isOpen && <WholeText {...props} />}
    </details>
  );
}

function WholeText({ at }: DocumentTextProps): JSX.Element {
  const content = useResource(
    useCallback((signal: AbortSignal) => get(CONTENT, { params: at, signal }), [at.vector_store_id, at.file_id]),
  );
  // A document that was inserted in chunks has no other text than these.
  const text = content.value?.data.map((part) => part.text).join("\n\n");
  return (
    <div class="stack">
      {content.error && <ErrorState error={content.error} onRetry={content.reload} />}
      {text === undefined && !content.error && <Skeleton lines={6} />}
      {text === "" && <EmptyState title="The file has no text" />}
      {text && <LongText text={text} label="Text of the file" />}
      <div class="actions">
        <CopyAs snippet={{ method: "GET", url: addressOf(CONTENT, at).href }} />
      </div>
    </div>
  );
}
