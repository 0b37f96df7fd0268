import type { JSX } from "preact";
import { useCallback, useState } from "preact/hooks";
import { get, type Schemas, send } from "../../api";
import { Button } from "../../components/button";
import { Table, usePaged } from "../../components/list";
import { EmptyState, ErrorState } from "../../components/states";
import { toast } from "../../components/toast";
import { ApiError, toApiError } from "../../errors";
import { formatBytes } from "../../format";
import { sentenceOf } from "../../read/message-view";
import { save } from "../../save";
import { EraseUser, type Receipt } from "./erase-user";
import { ErasureReceipt } from "./erasure-receipt";

type Owned = Schemas["OwnedObject"];
const USER = "/v1/admin/users/{user}";
const PAGE = 100;

export function UserObjects({ user }: { user: string }): JSX.Element {
  // The cursor of the next page is not an id of an object, so it is kept beside the list.
  const [cursor] = useState({ next: "" });
  const load = useCallback(
    async (before: readonly Owned[], signal: AbortSignal) => {
      const after = before.length ? cursor.next : null;
      const page = await get(USER, { params: { user }, query: { export: false, limit: PAGE, after }, signal });
      cursor.next = page.next ?? "";
      return { items: page.data, hasMore: page.has_more };
    },
    [user],
  );
  const paged = usePaged(load);
  const [isErasing, setErasing] = useState(false);
  const [receipt, setReceipt] = useState<Receipt | null>(null);
  const onErased = (made: Receipt) => {
    setReceipt(made);
    paged.reload();
  };
  const isKnown = paged.items.length > 0;
  return (
    <section class="stack" aria-labelledby="user">
      <h2 id="user" tabIndex={-1} class="long-text">
        {user}
      </h2>
      {isKnown && (
        <div class="actions">
          <ExportButton user={user} />
          <Button kind="danger" onClick={() => setErasing(true)}>
            Erase …
          </Button>
        </div>
      )}
      {receipt && <ErasureReceipt receipt={receipt} />}
      <Table
        caption={`Objects of ${user}`}
        columns={[
          { title: "Kind", cell: (each: Owned) => sentenceOf(each.kind) },
          { title: "Id", cell: (each: Owned) => <code>{each.id}</code> },
          { title: "Of", cell: (each: Owned) => <Parent owned={each} /> },
        ]}
        paged={paged}
        keyOf={(each) => `${each.kind}:${each.agent_id ?? each.vector_store_id ?? ""}:${each.id}`}
        empty={
          <EmptyState title={receipt ? "Nothing is left" : "Nothing belongs to this end user"}>
            Ids are compared exactly, with the case of their letters. Objects belong to whom the request names with{" "}
            <code>X-Stint-User</code>, <code>user</code> or <code>safety_identifier</code>.
          </EmptyState>
        }
      />
      <EraseUser user={user} isOpen={isErasing} onClose={() => setErasing(false)} onErased={onErased} />
    </section>
  );
}

function Parent({ owned }: { owned: Owned }): JSX.Element {
  if (owned.agent_id) return <span>agent {owned.agent_id}</span>;
  if (owned.vector_store_id) return <span>vector store {owned.vector_store_id}</span>;
  return <span class="hint">–</span>;
}

/** Download all of an end user as JSON lines. */
function ExportButton({ user }: { user: string }): JSX.Element {
  const [read, setRead] = useState<number | null>(null);
  const [error, setError] = useState<ApiError | null>(null);
  const run = async () => {
    setRead(0);
    setError(null);
    try {
      const response = await send("GET", USER, undefined, { params: { user }, query: { export: true } });
      const blob = await readExport(response, setRead);
      save(blob, `end-user-${new Date().toISOString().slice(0, 10)}.jsonl`);
      toast(`${formatBytes(blob.size)} exported`);
    } catch (failure) {
      setError(toApiError(failure));
    } finally {
      setRead(null);
    }
  };
  return (
    <>
      <Button onClick={() => void run()} busy={read !== null}>
        {read ? `Export: ${formatBytes(read)}` : "Export"}
      </Button>
      {error && <ErrorState error={error} onRetry={() => void run()} />}
    </>
  );
}

/** Read an export to its last line, without which it is not complete. Raises ApiError. */
async function readExport(response: Response, onBytes: (bytes: number) => void): Promise<Blob> {
  const parts: Uint8Array<ArrayBuffer>[] = [];
  let bytes = 0;
  const reader = response.body!.getReader();
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    parts.push(part.value);
    bytes += part.value.length;
    onBytes(bytes);
  }
  const blob = new Blob(parts, { type: "application/jsonl" });
  const tail = await blob.slice(-1000).text();
  if (!/"kind": ?"end"/.test(tail.trimEnd().split("\n").at(-1) ?? "")) {
    throw new ApiError(0, "stream_broken", "The export broke off before its last line, so it was not saved.");
  }
  return blob;
}
