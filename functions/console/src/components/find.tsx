/** Find something in a list by its id or a part of its name. */
import type { JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import type { Resource } from "../resource";
import { TextField } from "./field";
import type { Paged } from "./list";

/** Pages that a search reads by itself. The reader continues it after that. */
const MOST_PAGES = 10;
const ENOUGH = 20;
const LOCAL_PAGE = 100;

export interface Found<T> {
  text: string;
  setText: (text: string) => void;
  paged: Paged<T>;
}

/** Keep the items of a paged list that contain a text, and read further pages until there are enough. */
export function useFind<T>(paged: Paged<T>, textsOf: (item: T) => readonly string[]): Found<T> {
  const [text, setText] = useState("");
  const [pages, setPages] = useState(0);
  const wanted = text.trim().toLowerCase();
  const items = wanted ? paged.items.filter((item) => matches(textsOf(item), wanted)) : paged.items;
  const isShort = wanted !== "" && items.length < ENOUGH && pages < MOST_PAGES;
  useEffect(() => setPages(0), [wanted]);
  useEffect(() => {
    if (!isShort || !paged.hasMore || paged.isLoading || paged.error) return;
    setPages(pages + 1);
    paged.loadMore();
  }, [isShort, pages, paged.hasMore, paged.isLoading, paged.error]);
  return { text, setText, paged: { ...paged, items } };
}

/** Show a list that is read at once page by page, with those that contain a text. */
export function useFindLocal<T>(resource: Resource<readonly T[]>, textsOf: (item: T) => readonly string[]): Found<T> {
  const [text, setText] = useState("");
  const [shown, setShown] = useState(LOCAL_PAGE);
  const wanted = text.trim().toLowerCase();
  const all = resource.value;
  const kept = useMemo(
    () => (wanted ? (all ?? []).filter((item) => matches(textsOf(item), wanted)) : (all ?? [])),
    [all, wanted],
  );
  useEffect(() => setShown(LOCAL_PAGE), [wanted]);
  const paged: Paged<T> = {
    items: kept.slice(0, shown),
    hasMore: kept.length > shown,
    isLoading: resource.isLoading && !all,
    error: all ? null : resource.error,
    loadMore: all ? () => setShown(shown + LOCAL_PAGE) : resource.reload,
    reload: resource.reload,
    change: (edit) => all && resource.set(edit(all)),
  };
  return { text, setText, paged };
}

function matches(texts: readonly string[], wanted: string): boolean {
  return texts.some((text) => text.toLowerCase().includes(wanted));
}

export function FindField<T>({ found, label }: { found: Found<T>; label: string }): JSX.Element {
  return (
    <TextField
      label={label}
      type="search"
      autoComplete="off"
      spellcheck={false}
      value={found.text}
      onText={found.setText}
    />
  );
}
