/** Files, newest first. */
import type { JSX } from "preact";
import { useCallback, useEffect, useMemo } from "preact/hooks";
import { remove, send } from "../../api";
import { useAction } from "../../components/action";
import { Button } from "../../components/button";
import { ConfirmButton } from "../../components/confirm-button";
import { FindField, useFind } from "../../components/find";
import { type Column, type Paged, Table, usePaged } from "../../components/list";
import { NameCell } from "../../components/name-cell";
import { EmptyState } from "../../components/states";
import { toast } from "../../components/toast";
import { Time } from "../../components/values";
import { formatBytes, formatName } from "../../format";
import { save } from "../../save";
import { readFiles, type StoredFile } from "./api";
import { KnowledgeHead } from "./head";
import { UploadBox } from "./upload-box";
import { useUploads } from "./uploads";

/** A larger file would fill the memory of the page before it is saved. */
const LARGEST_DOWNLOAD = 100_000_000;

export default function FilesPage(): JSX.Element {
  const paged = usePaged(readFiles);
  const { change } = paged;
  const found = useFind(paged, ({ id, filename }) => [id, filename]);
  const uploads = useUploads(
    useCallback(async (file: StoredFile) => change((items) => [file, ...items.filter(({ id }) => id !== file.id)]), []),
  );
  const columns = useMemo(() => columnsOf(change), [change]);
  return (
    <div class="page page-wide">
      <KnowledgeHead />
      <UploadBox uploads={uploads} isForStore={false} />
      <div class="toolbar" role="search">
        <FindField found={found} label="Find by name or id" />
      </div>
      <Table
        path="/v1/files"
        caption="Files, newest first"
        columns={columns}
        paged={found.paged}
        keyOf={({ id }) => id}
        empty={
          found.text.trim() ? (
            <EmptyState title={paged.hasMore ? "No match so far" : "No file has this name"}>
              {paged.hasMore && <Button onClick={paged.loadMore}>Search further</Button>}
            </EmptyState>
          ) : (
            <EmptyState title="There is no file yet">
              <p>Files that agents should search belong in a vector store, where they can be uploaded, too.</p>
            </EmptyState>
          )
        }
      />
    </div>
  );
}

function columnsOf(change: Paged<StoredFile>["change"]): readonly Column<StoredFile>[] {
  return [
    {
      title: "Name",
      cell: ({ id, filename }) => <NameCell name={filename} id={id} />,
    },
    { title: "Purpose", cell: ({ purpose }) => purpose },
    { title: "Size", isNumber: true, cell: ({ bytes }) => formatBytes(bytes) },
    { title: "Uploaded", cell: ({ created_at: at }) => <Time at={at} /> },
    {
      title: "Expires",
      cell: ({ expires_at: at }) => (at ? <Time at={at} /> : <span class="hint">never</span>),
    },
    {
      title: "Actions",
      cell: (file) => (
        <span class="row-actions">
          <Download file={file} />
          <ConfirmButton
            label="Delete"
            kind="quiet"
            aria-label={`Delete ${formatName(file.filename)}`}
            title="Delete this file?"
            onConfirm={deleteFile(file, change)}
            text={`${formatName(file.filename)} will also be removed from all vector stores.`}
          />
        </span>
      ),
    },
  ];
}

function deleteFile({ id }: StoredFile, change: Paged<StoredFile>["change"]) {
  return async () => {
    await remove("/v1/files/{file_id}", { params: { file_id: id } });
    change((items) => items.filter((item) => item.id !== id));
    toast("File deleted");
  };
}

function Download({ file }: { file: StoredFile }): JSX.Element {
  const { isBusy, error, run } = useAction(async () => {
    const response = await send("GET", "/v1/files/{file_id}/content", undefined, { params: { file_id: file.id } });
    // The type is not that of the file: a blob has this page's origin, and must not open as a page.
    const blob = new Blob([await response.arrayBuffer()], { type: "application/octet-stream" });
    save(blob, formatName(file.filename));
  });
  useEffect(() => {
    if (error) toast(error.message);
  }, [error]);
  if (file.bytes > LARGEST_DOWNLOAD) return <span class="hint">Too large to save here</span>;
  return (
    <Button kind="quiet" busy={isBusy} aria-label={`Save ${formatName(file.filename)}`} onClick={run}>
      Save
    </Button>
  );
}
