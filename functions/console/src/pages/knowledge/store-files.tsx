import type { JSX } from "preact";
import { useCallback, useMemo, useState } from "preact/hooks";
import { get, post, remove } from "../../api";
import { Button } from "../../components/button";
import { ConfirmButton } from "../../components/confirm-button";
import { ChoiceField } from "../../components/field";
import { FindField, useFind } from "../../components/find";
import { type Column, type Paged, Table, usePaged } from "../../components/list";
import { NameCell } from "../../components/name-cell";
import { EmptyState } from "../../components/states";
import { toast } from "../../components/toast";
import { Badge, Time } from "../../components/values";
import { formatBytes, formatName } from "../../format";
import { AddFile } from "./add-file";
import { mayWrite, readStoreFiles, reasonOf, type Store, STORE_FILE, STORE_FILES, type StoreFile } from "./api";
import { useFollow } from "./follow";
import { documentPath } from "./head";
import { UploadBox } from "./upload-box";
import { useUploads } from "./uploads";

const STATES = ["in_progress", "completed", "failed", "cancelled"] as const;

interface StoreFilesProps {
  store: Store;
  /** The counts of the store have changed. */
  onChange: () => void;
}

export function StoreFiles({ store, onChange }: StoreFilesProps): JSX.Element {
  const [filter, setFilter] = useState<StoreFile["status"] | null>(null);
  const paged = usePaged(
    useCallback(
      (before: readonly StoreFile[], signal: AbortSignal) => readStoreFiles(store.id, filter, before, signal),
      [store.id, filter],
    ),
  );
  const { change } = paged;
  const found = useFind(paged, ({ id, filename }) => [id, filename]);
  const [isAdding, setAdding] = useState(false);
  const add = async (fileId: string) => {
    const added = await post(STORE_FILES, { file_id: fileId }, { params: { vector_store_id: store.id } });
    change((items) => [added, ...items.filter(({ id }) => id !== added.id)]);
    onChange();
  };
  const uploads = useUploads(({ id }) => add(id));
  const busy = paged.items.filter(({ status }) => status === "in_progress").map(({ id }) => id);
  const problem = useFollow(busy, async (ids, signal) => {
    const params = (id: string) => ({ params: { vector_store_id: store.id, file_id: id }, signal });
    const read = await Promise.all(ids.map((id) => get(STORE_FILE, params(id))));
    const byId = new Map(read.map((file) => [file.id, file]));
    change((items) => items.map((item) => byId.get(item.id) ?? item));
    if (read.some(({ status }) => status !== "in_progress")) onChange();
  });
  const columns = useMemo(() => columnsOf(store, change, onChange), [store.id, change, onChange]);
  const isWritable = mayWrite() && store.status !== "expired";
  return (
    <section class="stack" aria-label="Files of the vector store">
      {isWritable && <UploadBox uploads={uploads} isForStore />}
      <div class="toolbar" role="search">
        <FindField found={found} label="Find by name or id" />
        <ChoiceField
          label="Status"
          value={filter ?? ""}
          choices={[["", "All"], ...STATES.map((state) => [state, state.replace("_", " ")] as const)]}
          onChoose={(state) => setFilter(state || null)}
        />
        {isWritable && <Button onClick={() => setAdding(true)}>Add an uploaded file</Button>}
      </div>
      {problem && <p class="hint">The state cannot be read now: {problem.message} Trying again …</p>}
      <Table
        caption="Files of the vector store, newest first"
        columns={columns}
        paged={found.paged}
        keyOf={({ id }) => id}
        empty={
          found.text.trim() || filter ? (
            <EmptyState title={paged.hasMore ? "No match so far" : "There is no such file"}>
              {paged.hasMore && <Button onClick={paged.loadMore}>Search further</Button>}
            </EmptyState>
          ) : (
            <EmptyState title="This vector store has no file yet">
              {isWritable && <p>Drop one above. It can be searched as soon as it is ingested.</p>}
            </EmptyState>
          )
        }
      />
      <AddFile isOpen={isAdding} onClose={() => setAdding(false)} onAdd={add} />
    </section>
  );
}

function columnsOf(
  { id: store }: Store,
  change: Paged<StoreFile>["change"],
  onChange: () => void,
): readonly Column<StoreFile>[] {
  const removeFile = (id: string) => async () => {
    await remove(STORE_FILE, { params: { vector_store_id: store, file_id: id } });
    change((items) => items.filter((item) => item.id !== id));
    toast("File removed from the vector store");
    onChange();
  };
  return [
    {
      title: "Name",
      cell: ({ id, filename }) => <NameCell to={documentPath(store, id)} name={filename} id={id} />,
    },
    {
      title: "Status",
      cell: (file) => (
        <span class="badges" aria-live="polite">
          <Badge status={file.status} />
          {file.status === "failed" && <span class="field-error">{reasonOf(file)}</span>}
        </span>
      ),
    },
    { title: "Size", isNumber: true, cell: ({ usage_bytes: bytes }) => (bytes ? formatBytes(bytes) : "–") },
    { title: "Added", cell: ({ created_at: at }) => <Time at={at} /> },
    ...(mayWrite()
      ? [
          {
            title: "Actions",
            cell: ({ id, filename }: StoreFile) => (
              <span class="row-actions">
                <ConfirmButton
                  label="Remove"
                  kind="quiet"
                  aria-label={`Remove ${formatName(filename) || id}`}
                  title="Remove this file from the vector store?"
                  onConfirm={removeFile(id)}
                  text={`Searches do not find ${formatName(filename) || id} any more. The file itself stays.`}
                />
              </span>
            ),
          },
        ]
      : []),
  ];
}
