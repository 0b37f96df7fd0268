/** Lists that are loaded page by page. */
import type { ComponentChildren, JSX } from "preact";
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { type ApiError, toApiError } from "../errors";
import { Button } from "./button";
import { EmptyState, ErrorState, Skeleton } from "./states";
import { addressOf } from "../api";
import { CopyAs } from "./copy";
import { Json } from "./json-view";

export interface Page<T> {
  items: readonly T[];
  hasMore: boolean;
  /** Where the next page starts, for lists that do not know it from their items. */
  cursor?: string | null;
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

/** Load the next page of a list. It gets the items so far, and the cursor of the page before, null for the first. */
export type LoadPage<T> = (before: readonly T[], signal: AbortSignal, cursor: string | null) => Promise<Page<T>>;

/** Load the pages of a list. `load` must be stable, as of useCallback. */
export function usePaged<T>(load: LoadPage<T>): Paged<T> {
  const [state, setState] = useState<Omit<Paged<T>, "loadMore" | "reload" | "change">>(NOTHING);
  const current = useRef(new AbortController());
  const cursor = useRef<string | null>(null);
  const next = useCallback(
    (before: readonly T[], isFirst: boolean) => {
      if (isFirst) cursor.current = null;
      current.current.abort();
      const own = (current.current = new AbortController());
      setState((old) => ({ ...old, items: before, isLoading: true, error: null }));
      load(before, own.signal, cursor.current).then(
        ({ items, hasMore, cursor: found }) => {
          if (own.signal.aborted) return;
          cursor.current = found ?? null;
          setState({ items: [...before, ...items], hasMore, isLoading: false, error: null });
        },
        (error: unknown) => {
          if (!own.signal.aborted) setState((old) => ({ ...old, isLoading: false, error: toApiError(error) }));
        },
      );
    },
    [load],
  );
  useEffect(() => {
    next([], true);
    return () => current.current.abort();
  }, [next]);
  const change = useCallback(
    (edit: (items: readonly T[]) => readonly T[]) => setState((old) => ({ ...old, items: edit(old.items) })),
    [],
  );
  return { ...state, loadMore: () => next(state.items, false), reload: () => next([], true), change };
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
  paged: Omit<Paged<T>, "change">;
  keyOf: (item: T) => string;
  empty: JSX.Element;
  /** The path of the API that lists the rows, if they are its objects. Their JSON is below the table. */
  path?: string;
}

/** A table with its empty, loading and error states. On a phone, each row is a card. */
export function Table<T>({ caption, columns, paged, keyOf, empty, path }: TableProps<T>): JSX.Element {
  const { items, hasMore, isLoading, error, loadMore } = paged;
  if (items.length === 0) {
    if (error) return <ErrorState error={error} onRetry={loadMore} />;
    if (isLoading) return <Skeleton lines={4} />;
    if (!hasMore) return empty;
    return (
      <EmptyState title="Nothing was found so far">
        <Button onClick={loadMore}>Search further</Button>
      </EmptyState>
    );
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
      <More paged={paged} />
      {path && (
        <Json value={items} label={caption}>
          <CopyAs snippet={{ method: "GET", url: addressOf(path).href }} />
        </Json>
      )}
    </>
  );
}

/** The end of a list: a button that goes on, or why that failed. */
export function More({ paged }: { paged: Pick<Paged<unknown>, "hasMore" | "isLoading" | "error" | "loadMore"> }) {
  const { hasMore, isLoading, error, loadMore } = paged;
  if (error) return <ErrorState error={error} onRetry={loadMore} />;
  if (!hasMore) return null;
  return (
    <div class="more">
      <Button onClick={loadMore} busy={isLoading}>
        Load more
      </Button>
    </div>
  );
}
