import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { Button } from "../../components/button";
import { Dialog } from "../../components/dialog";
import { FindField, useFind } from "../../components/find";
import { More, usePaged } from "../../components/list";
import { EmptyState, ErrorState, Skeleton } from "../../components/states";
import { type ApiError, toApiError } from "../../errors";
import { formatBytes, formatName, formatTime } from "../../format";
import { readFiles } from "./api";

interface AddFileProps {
  isOpen: boolean;
  onClose: () => void;
  onAdd: (fileId: string) => Promise<void>;
}

/** Choose a file that was uploaded before. */
export function AddFile({ isOpen, onClose, onAdd }: AddFileProps): JSX.Element {
  return (
    <Dialog title="Add an uploaded file" isOpen={isOpen} onClose={onClose}>
      <Chooser onClose={onClose} onAdd={onAdd} />
    </Dialog>
  );
}

function Chooser({ onClose, onAdd }: Omit<AddFileProps, "isOpen">): JSX.Element {
  const found = useFind(usePaged(readFiles), ({ id, filename }) => [id, filename]);
  const { items, isLoading, error: listError } = found.paged;
  const [error, setError] = useState<ApiError | null>(null);
  const [busy, setBusy] = useState("");
  const choose = async (id: string) => {
    setBusy(id);
    setError(null);
    try {
      await onAdd(id);
      onClose();
    } catch (failure) {
      setError(toApiError(failure));
      setBusy("");
    }
  };
  return (
    <div class="stack">
      <FindField found={found} label="Find by name or id" />
      {error && <ErrorState error={error} />}
      {items.length === 0 && isLoading && <Skeleton />}
      {items.length === 0 && !isLoading && !listError && <EmptyState title="There is no such file" />}
      <ul class="rows">
        {items.map(({ id, filename, bytes, created_at: at }) => (
          <li key={id}>
            <button type="button" class="row" disabled={busy !== ""} onClick={() => void choose(id)}>
              <span>{formatName(filename)}</span>
              <span class="hint">
                {formatBytes(bytes)}, {formatTime(at)}
              </span>
            </button>
          </li>
        ))}
      </ul>
      <More paged={found.paged} />
      <div class="actions">
        <Button onClick={onClose}>Cancel</Button>
      </div>
    </div>
  );
}
