import type { JSX } from "preact";
import { useCallback, useState } from "preact/hooks";
import { addressOf, get, type Schemas } from "../../api";
import { Button } from "../../components/button";
import { CopyAs } from "../../components/copy";
import { Excerpt } from "../../components/excerpt";
import { usePaged } from "../../components/list";
import { EmptyState, ErrorState, Skeleton } from "../../components/states";
import { formatBytes, formatCount } from "../../format";
import { STORE_FILE } from "./api";

type Chunk = Schemas["VectorStoreFileChunk"];

const CHUNKS = `${STORE_FILE}/chunks` as const;
const PAGE = 20;

interface DocumentChunksProps {
  at: { vector_store_id: string; file_id: string };
}

/** The chunks of a file, as searches find them. */
export function DocumentChunks({ at }: DocumentChunksProps): JSX.Element {
  const [total, setTotal] = useState<number | null>(null);
  const load = useCallback(
    async (before: readonly Chunk[], signal: AbortSignal) => {
      const last = before.at(-1);
      const query = { limit: PAGE, ...(last && { after: last.id }) };
      const page = await get(CHUNKS, { params: at, query, signal });
      setTotal(page.total ?? null);
      return { items: page.data, hasMore: Boolean(page.has_more) };
    },
    [at.vector_store_id, at.file_id],
  );
  const { items, hasMore, isLoading, error, loadMore } = usePaged(load);
  return (
    <section class="stack" aria-label="Chunks of the file">
      <header class="section-head">
        <h2>{total === null ? "Chunks" : total === 1 ? "1 chunk" : `${formatCount(total)} chunks`}</h2>
        <CopyAs snippet={{ method: "GET", url: addressOf(CHUNKS, at).href }} />
      </header>
      {items.length === 0 && isLoading && <Skeleton lines={6} />}
      {items.length === 0 && !isLoading && !error && <EmptyState title="The file has no chunks" />}
      {items.length > 0 && (
        <ol class="results">
          {items.map((chunk) => (
            <li key={chunk.id} class="card stack">
              <header class="section-head">
                <h3>Chunk {formatCount(chunk.index + 1)}</h3>
                <span class="hint number">{sizeOf(chunk)}</span>
              </header>
              <Excerpt text={chunk.text} label={`chunk ${chunk.index + 1}`} length={400} />
            </li>
          ))}
        </ol>
      )}
      {error && <ErrorState error={error} onRetry={loadMore} />}
      {hasMore && !error && (
        <div class="more">
          <Button onClick={loadMore} busy={isLoading}>
            Load more chunks
          </Button>
        </div>
      )}
    </section>
  );
}

function sizeOf({ tokens, bytes }: Chunk): string {
  const counted = tokens == null ? "" : `${formatCount(tokens)} ${tokens === 1 ? "token" : "tokens"} · `;
  return counted + formatBytes(bytes);
}
