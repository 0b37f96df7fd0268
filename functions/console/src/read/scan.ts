/** Pages of a list of which entries are searched for. */
import { type ApiError, toApiError } from "../errors";
import type { LoadPage } from "../components/list";

export interface Batch<T> {
  items: readonly T[];
  /** After what the next page starts; null: there is none. */
  next: string | null;
}

/** A search reads at most so many pages of the API; a press of a button goes on. */
const MOST_PAGES = 5;
export const PAGE_SIZE = 50;

/** Return a loader for `usePaged`, which reads pages until enough entries match. */
export function scan<T>(
  load: (after: string | null, signal: AbortSignal) => Promise<Batch<T>>,
  matches: (item: T) => boolean = () => true,
): LoadPage<T> {
  return async (_, signal, cursor) => {
    const items: T[] = [];
    let after = cursor;
    for (let pages = 0; pages < MOST_PAGES && items.length < PAGE_SIZE / 2; pages += 1) {
      const batch: Batch<T> = await load(after, signal);
      items.push(...batch.items.filter(matches));
      after = batch.next;
      if (after === null) break;
    }
    return { items, hasMore: after !== null, cursor: after };
  };
}

/** Return a loader of a list with the one entry that an id names, or of an empty list. */
export function findOne<T>(load: (signal: AbortSignal) => Promise<T>): LoadPage<T> {
  return async (_, signal) => {
    try {
      return { items: [await load(signal)], hasMore: false };
    } catch (error) {
      const failure: ApiError = toApiError(error);
      if (failure.status !== 404) throw failure;
      return { items: [], hasMore: false };
    }
  };
}

/** Return the page that a list of OpenAI's API is. */
export function batchOf<T extends { id: string }>(list: {
  data: T[];
  has_more?: boolean;
  last_id?: string;
  next_after?: string | null;
}): Batch<T> {
  const last = list.next_after || list.last_id || list.data.at(-1)?.id || null;
  return { items: list.data, next: list.has_more ? last : null };
}

/** Return whether a text is in some of these, in any case of letters. */
export function contains(text: string, ...places: readonly (string | null | undefined)[]): boolean {
  const sought = text.toLowerCase();
  return sought === "" || places.some((place) => place?.toLowerCase().includes(sought));
}
