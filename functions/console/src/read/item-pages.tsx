/** Items or messages that are loaded page by page. */
import type { JSX } from "preact";
import { More, type Paged } from "../components/list";
import { EmptyState, Skeleton } from "../components/states";
import { ItemView } from "./message-view";

interface ItemPagesProps {
  paged: Paged<Readonly<Record<string, unknown>>>;
  /** What to say if there is nothing. */
  empty: string;
}

export function ItemPages({ paged, empty }: ItemPagesProps): JSX.Element {
  const { items, isLoading, error } = paged;
  if (items.length === 0 && isLoading) return <Skeleton lines={3} />;
  return (
    <>
      {items.length === 0 && !error && <EmptyState title={empty} />}
      <div class="messages">
        {items.map((item, index) => (
          <ItemView key={String(item["id"] ?? index)} item={item} />
        ))}
      </div>
      <More paged={paged} />
    </>
  );
}
