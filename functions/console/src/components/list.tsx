/** Lists that are loaded page by page. */
import type { ComponentChildren, JSX } from "preact";
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { type ApiError, toApiError } from "../errors";
import { Button } from "./button";
import { EmptyState, ErrorState, Skeleton } from "./states";

export interface Page<T> {
  items: readonly T[];
  hasMore: boolean;
}

export interface Paged<T> {
  items: readonly T[];
  hasMore: boolean;
  isLoading: boolean;
  error: ApiError | null;
  loadMore: () => void;
  reload: () => void;
  /** Show other items, such as after a change of one. */
  change: (edit: (items: readonly T[]) => readonly T[]) => void;
}

/** Load the pages of a list. `load` gets the items so far, and must be stable, as of useCallback. */
export function usePaged<T>(load: (before: readonly T[], signal: AbortSignal) => Promise<Page<T>>): Paged<T> {
  const [state, setState] = useState<Omit<Paged<T>, "loadMore" | "reload" | "change">>(NOTHING);
  const current = useRef(new AbortController());
  const next = useCallback(
    (before: readonly T[]) => {
      current.current.abort();
      const own = (current.current = new AbortController());
      setState((old) => ({ ...old, items: before, isLoading: true, error: null }));
      load(before, own.signal).then(
        ({ items, hasMore }) => {
          if (!own.signal.aborted) setState({ items: [...before, ...items], hasMore, isLoading: false, error: null });
        },
        (error: unknown) => {
          if (!own.signal.aborted) setState((old) => ({ ...old, isLoading: false, error: toApiError(error) }));
        },
      );
    },
    [load],
  );
  useEffect(() => {
    next([]);
    return () => current.current.abort();
  }, [next]);
  const change = useCallback(
    (edit: (items: readonly T[]) => readonly T[]) => setState((old) => ({ ...old, items: edit(old.items) })),
    [],
  );
  return { ...state, loadMore: () => next(state.items), reload: () => next([]), change };
}

const NOTHING = { items: [], hasMore: false, isLoading: true, error: null };

export interface Column<T> {
  title: string;
  /** Numbers are aligned on the right. */
  isNumber?: boolean;
  cell: (item: T) => ComponentChildren;
}

interface TableProps<T> {
  /** What the table shows, for users of screen readers. */
  caption: string;
  columns: readonly Column<T>[];
  paged: Paged<T>;
  keyOf: (item: T) => string;
  empty: JSX.Element;
}

/** A table with its empty, loading and error states. On a phone, each row is a card. */
export function Table<T>({ caption, columns, paged, keyOf, empty }: TableProps<T>): JSX.Element {
  const { items, hasMore, isLoading, error, loadMore } = paged;
  if (items.length === 0) {
    if (error) return <ErrorState error={error} onRetry={loadMore} />;
    return isLoading ? <Skeleton lines={4} /> : empty;
  }
  return (
    <>
      <table class="table">
        <caption class="visually-hidden">{caption}</caption>
        <thead>
          <tr>
            {columns.map(({ title, isNumber }) => (
              <th key={title} scope="col" class={isNumber ? "is-number" : ""}>
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {items.map((item) => (
            <tr key={keyOf(item)}>
              {columns.map(({ title, isNumber, cell }) => (
                <td key={title} data-title={title} class={isNumber ? "is-number" : ""}>
                  <div>{cell(item)}</div>
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {error && <ErrorState error={error} onRetry={loadMore} />}
      {hasMore && !error && (
        <div class="more">
          <Button onClick={loadMore} busy={isLoading}>
            Load more
          </Button>
        </div>
      )}
    </>
  );
}

export { EmptyState };
