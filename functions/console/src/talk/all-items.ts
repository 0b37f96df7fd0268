/** Lists that the API has with the oldest first, newest first. */
import type { Page } from "../components/list";

interface Listed<T> {
  data: readonly T[];
  has_more: boolean;
}

/** The API returns at most so many entries. */
const PAGE = 1000;
const MOST_PAGES = 20;
export const SHOWN = 50;

/** Return a loader of pages for `usePaged`, of the entries that match. */
export function newestFirst<T>(
  load: (start: number, limit: number, signal: AbortSignal) => Promise<Listed<T>>,
  matches: (item: T) => boolean,
): (before: readonly T[], signal: AbortSignal) => Promise<Page<T>> {
  let all: readonly T[] | null = null;
  return async (before, signal) => {
    if (before.length === 0 || all === null) all = (await loadAll(load, signal)).filter(matches).reverse();
    const end = before.length + SHOWN;
    return { items: all.slice(before.length, end), hasMore: end < all.length };
  };
}

async function loadAll<T>(
  load: (start: number, limit: number, signal: AbortSignal) => Promise<Listed<T>>,
  signal: AbortSignal,
): Promise<T[]> {
  const found: T[] = [];
  for (let page = 0; page < MOST_PAGES; page += 1) {
    const { data, has_more } = await load(found.length, PAGE, signal);
    found.push(...data);
    if (!has_more || data.length === 0) break;
  }
  return found;
}
