import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { formatCount } from "../format";
import { Button } from "./button";

interface WindowListProps<T> {
  items: readonly T[];
  keyOf: (item: T) => string;
  children: (item: T) => JSX.Element;
  /** What the items are, in the plural. */
  noun: string;
  class?: string;
  /** So many items are on the page. */
  size?: number;
  /** Load items before the first one, if there are some. */
  onEarlier?: (() => Promise<unknown>) | undefined;
}

/** A list of which a part is on the page: its end, or what the reader has gone back to. */
export function WindowList<T>({
  items,
  keyOf,
  children,
  noun,
  class: own = "",
  size = 60,
  onEarlier,
}: WindowListProps<T>): JSX.Element {
  /** The end of the part; null: that of the list. */
  const [end, setEnd] = useState<number | null>(null);
  const last = Math.min(end ?? items.length, items.length);
  const first = Math.max(0, last - size);
  const later = items.length - last;
  return (
    <>
      {first > 0 && (
        <Button kind="quiet" onClick={() => setEnd(Math.max(size, first))}>
          Show earlier {noun} ({formatCount(first)} more)
        </Button>
      )}
      {first === 0 && onEarlier && (
        <Button kind="quiet" onClick={() => void onEarlier().then(() => setEnd(size))}>
          Show earlier {noun}
        </Button>
      )}
      <ol class={`plain-list ${own}`}>
        {items.slice(first, last).map((item) => (
          <li key={keyOf(item)}>{children(item)}</li>
        ))}
      </ol>
      {later > 0 && (
        <div class="actions">
          <Button kind="quiet" onClick={() => setEnd(last + size >= items.length ? null : last + size)}>
            Show later {noun} ({formatCount(later)} more)
          </Button>
          <Button kind="quiet" onClick={() => setEnd(null)}>
            To the end
          </Button>
        </div>
      )}
    </>
  );
}
