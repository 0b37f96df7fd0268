import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { remove, type Schemas } from "../../api";
import { ConfirmDialog, keepFocus } from "../../components/confirm";
import { formatCount } from "../../format";

export type Receipt = Schemas["ErasureReceipt"];

const MOST_ATTEMPTS = 50;
const PAUSE = 2000;

interface EraseUserProps {
  user: string;
  isOpen: boolean;
  onClose: () => void;
  onErased: (receipt: Receipt) => void;
}

export function EraseUser({ user, isOpen, onClose, onErased }: EraseUserProps): JSX.Element {
  const [progress, setProgress] = useState<Receipt | null>(null);
  const erase = async () => {
    try {
      onErased(await eraseAll(user, setProgress));
      keepFocus("user");
    } finally {
      setProgress(null);
    }
  };
  return (
    <ConfirmDialog
      title="Erase an end user"
      isOpen={isOpen}
      onClose={onClose}
      action="Erase everything"
      typed={user}
      typedLabel="Type the id to confirm"
      onConfirm={erase}
    >
      <p>
        This deletes all that is listed, whole: sessions with their turns, conversations with what others wrote to them,
        files with their chunks in all vector stores. It cannot be undone.
      </p>
      <p class="hint">
        Not erased: what was sent without this id, names of callers in keys and usage, and backups of the table for 35
        days.
      </p>
      <p role="status">
        {progress && `${formatCount(countOf(progress))} deleted, ${formatCount(progress.remaining)} left …`}
      </p>
    </ConfirmDialog>
  );
}

/** Repeat an erasure until nothing is left, and return the sum of its receipts. */
async function eraseAll(user: string, onProgress: (receipt: Receipt) => void): Promise<Receipt> {
  const deleted: Record<string, number> = {};
  for (let attempt = 1; ; attempt += 1) {
    const receipt = await remove("/v1/admin/users/{user}", { params: { user } });
    for (const [kind, count] of Object.entries(receipt.deleted)) deleted[kind] = (deleted[kind] ?? 0) + count;
    const summed = { ...receipt, deleted };
    if (receipt.complete || attempt === MOST_ATTEMPTS) return summed;
    onProgress(summed);
    // What a process has just announced may be stored for a minute more.
    await new Promise((resolve) => setTimeout(resolve, PAUSE));
  }
}

export function countOf(receipt: Receipt): number {
  return Object.values(receipt.deleted).reduce((sum, count) => sum + count, 0);
}
