import type { JSX } from "preact";
import { Facts } from "../../components/facts";
import { Time } from "../../components/values";
import { formatCount } from "../../format";
import { sentenceOf } from "../../read/message-view";
import { countOf, type Receipt } from "./erase-user";

export function ErasureReceipt({ receipt }: { receipt: Receipt }): JSX.Element {
  return (
    <div class="card stack" role="status">
      <h3>{receipt.complete ? "Erased" : "Not everything is erased yet"}</h3>
      <Facts
        rows={[
          ["Deleted objects", formatCount(countOf(receipt))],
          ...Object.entries(receipt.deleted).map(([kind, count]) => [sentenceOf(kind), formatCount(count)] as const),
          ["Left", formatCount(receipt.remaining)],
          ["At", <Time at={receipt.created_at} />],
        ]}
      />
      {!receipt.complete && <p>Something still writes for this end user. Erase again in a minute.</p>}
    </div>
  );
}
