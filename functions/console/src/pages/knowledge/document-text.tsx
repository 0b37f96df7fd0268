import type { JSX } from "preact";
import { useCallback, useState } from "preact/hooks";
import { addressOf, get } from "../../api";
import { Button } from "../../components/button";
import { CopyAs } from "../../components/copy";
import { Excerpt } from "../../components/excerpt";
import { LongText } from "../../components/long-text";
import { EmptyState, ErrorState, Skeleton } from "../../components/states";
import { formatCount } from "../../format";
import { useResource } from "../../resource";
import { STORE_FILE } from "./api";

const CONTENT = `${STORE_FILE}/content` as const;
const PAGE = 20;

interface DocumentTextProps {
  at: { vector_store_id: string; file_id: string };
}

/** The text of a file as it was ingested, or the chunks of a document that was inserted in chunks. */
export function DocumentText({ at }: DocumentTextProps): JSX.Element {
  const [shown, setShown] = useState(PAGE);
  const content = useResource(
    useCallback((signal: AbortSignal) => get(CONTENT, { params: at, signal }), [at.vector_store_id, at.file_id]),
  );
  const parts = content.value?.data ?? [];
  const title = parts.length > 1 ? `${formatCount(parts.length)} chunks` : "Text";
  return (
    <section class="stack" aria-label="Text of the file">
      <header class="section-head">
        <h2>{title}</h2>
        <CopyAs snippet={{ method: "GET", url: addressOf(CONTENT, at).href }} />
      </header>
      {content.error && <ErrorState error={content.error} onRetry={content.reload} />}
      {!content.value && !content.error && <Skeleton lines={6} />}
      {content.value && parts.length === 0 && <EmptyState title="The file has no text" />}
      {parts.length === 1 && <LongText text={parts[0]!.text} label="Text of the file" />}
      {parts.length > 1 && (
        <ol class="results">
          {parts.slice(0, shown).map(({ text }, index) => (
            <li key={index} class="card stack">
              <h3>Chunk {formatCount(index + 1)}</h3>
              <Excerpt text={text} label={`chunk ${index + 1}`} length={800} />
            </li>
          ))}
        </ol>
      )}
      {parts.length > shown && (
        <div class="more">
          <Button onClick={() => setShown(shown + PAGE)}>
            Show {Math.min(PAGE, parts.length - shown)} more chunks
          </Button>
        </div>
      )}
    </section>
  );
}
