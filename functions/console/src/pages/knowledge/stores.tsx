/** Vector stores, newest first. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { get } from "../../api";
import { Button } from "../../components/button";
import { FindField, useFind } from "../../components/find";
import { type Column, Table, usePaged } from "../../components/list";
import { NameCell } from "../../components/name-cell";
import { EmptyState } from "../../components/states";
import { Badge, Time } from "../../components/values";
import { formatBytes, formatCount } from "../../format";
import { navigate } from "../../router";
import { isStoreId, mayWrite, readStores, type Store, STORE } from "./api";
import { useFollow } from "./follow";
import { KnowledgeHead, storePath } from "./head";
import { NewStore } from "./new-store";

const COLUMNS: readonly Column<Store>[] = [
  {
    title: "Name",
    cell: ({ id, name }) => <NameCell to={storePath(id)} name={name} id={id} />,
  },
  {
    title: "Status",
    cell: ({ status, file_counts: { in_progress: busy, failed } }) => (
      <span class="badges">
        <Badge status={status} />
        {busy !== undefined && busy > 0 && <span class="hint number">{formatCount(busy)} left</span>}
        {failed !== undefined && failed > 0 && (
          <span class="badge badge-bad">
            {formatCount(failed)} {failed === 1 ? "failure" : "failures"}
          </span>
        )}
      </span>
    ),
  },
  { title: "Files", isNumber: true, cell: ({ file_counts: { total } }) => formatCount(total ?? 0) },
  { title: "Size", isNumber: true, cell: ({ usage_bytes: bytes }) => formatBytes(bytes) },
  { title: "Created", cell: ({ created_at: at }) => <Time at={at} /> },
];

export default function KnowledgePage(): JSX.Element {
  const paged = usePaged(readStores);
  const found = useFind(paged, ({ id, name }) => [id, name]);
  const [isNew, setNew] = useState(false);
  const busy = paged.items.filter(({ status }) => status === "in_progress").map(({ id }) => id);
  useFollow(busy, async (ids, signal) => {
    const params = (id: string) => ({ params: { vector_store_id: id }, signal });
    const read = await Promise.all(ids.map((id) => get(STORE, params(id))));
    const byId = new Map(read.map((store) => [store.id, store]));
    paged.change((items) => items.map((item) => byId.get(item.id) ?? item));
  });
  const wanted = found.text.trim();
  return (
    <div class="page page-wide">
      <KnowledgeHead />
      <form
        class="toolbar"
        role="search"
        onSubmit={(event) => {
          event.preventDefault();
          if (isStoreId(wanted)) navigate(storePath(wanted));
        }}
      >
        <FindField found={found} label="Find by name or id" />
        {isStoreId(wanted) && <Button type="submit">Open this id</Button>}
        {mayWrite() && (
          <Button kind="primary" onClick={() => setNew(true)}>
            New vector store
          </Button>
        )}
      </form>
      <Table
        path="/v1/vector_stores"
        caption="Vector stores, newest first"
        columns={COLUMNS}
        paged={found.paged}
        keyOf={({ id }) => id}
        empty={
          wanted ? (
            <EmptyState title={paged.hasMore ? "No match so far" : "No vector store has this name"}>
              {paged.hasMore && <Button onClick={paged.loadMore}>Search further</Button>}
            </EmptyState>
          ) : (
            <EmptyState title="There is no vector store yet">
              <p>A vector store keeps documents that agents search.</p>
            </EmptyState>
          )
        }
      />
      <NewStore isOpen={isNew} onClose={() => setNew(false)} />
    </div>
  );
}
