/** Lists that the API gives in pages, newest first. */
import type { Page } from "../components/list";

interface Listed<T> {
  data: readonly T[];
  has_more: boolean;
  next_after?: string | null;
}

/** Return a loader for `usePaged`. `load` gets the position that the page before has named. */
export function newestFirst<T>(
  load: (after: string | null, signal: AbortSignal) => Promise<Listed<T>>,
): (before: readonly T[], signal: AbortSignal) => Promise<Page<T>> {
  let next: string | null = null;
  return async (before, signal) => {
    if (before.length === 0) next = null;
    let items: readonly T[] = [];
    let hasMore = true;
    // A page of a search may be empty, although more follows.
    while (hasMore && items.length === 0) {
      const page = await load(next, signal);
      next = page.next_after ?? null;
      items = page.data;
      hasMore = page.has_more && next !== null;
    }
    return { items, hasMore };
  };
}
