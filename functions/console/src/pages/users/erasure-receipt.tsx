import type { JSX } from "preact";
import { Time } from "../../components/values";
import { formatCount } from "../../format";
import { countOf, type Receipt } from "./erase-user";

export function ErasureReceipt({ receipt }: { receipt: Receipt }): JSX.Element {
  return (
    <div class="card stack" role="status">
      <h3>{receipt.complete ? "Erased" : "Not everything is erased yet"}</h3>
      <dl class="facts">
        <dt>Deleted objects</dt>
        <dd>{formatCount(countOf(receipt))}</dd>
        {Object.entries(receipt.deleted).map(([kind, count]) => (
          <>
            <dt key={kind}>{kind.replaceAll("_", " ")}</dt>
            <dd>{formatCount(count)}</dd>
          </>
        ))}
        <dt>Left</dt>
        <dd>{formatCount(receipt.remaining)}</dd>
        <dt>At</dt>
        <dd>
          <Time at={receipt.created_at} />
        </dd>
      </dl>
      {!receipt.complete && <p>Something still writes for this end user. Erase again in a minute.</p>}
    </div>
  );
}
