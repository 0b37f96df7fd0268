import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { type ApiError, toApiError } from "../errors";
import { Button } from "./button";
import { Dialog } from "./dialog";
import { ErrorState } from "./states";

interface ConfirmButtonProps {
  /** What the button says, such as "Delete". */
  label: string;
  /** The question. */
  title: string;
  /** What will be gone. */
  text: string;
  onConfirm: () => Promise<void>;
  kind?: "quiet" | "danger";
  "aria-label"?: string;
}

/** A button whose action is asked for once more. */
export function ConfirmButton(props: ConfirmButtonProps): JSX.Element {
  const { label, title, text, onConfirm, kind = "danger", "aria-label": name } = props;
  const [isOpen, setOpen] = useState(false);
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<ApiError | null>(null);
  const confirm = async () => {
    setBusy(true);
    setError(null);
    try {
      await onConfirm();
      setOpen(false);
    } catch (failure) {
      setError(toApiError(failure));
    } finally {
      setBusy(false);
    }
  };
  return (
    <>
      <Button kind={kind} onClick={() => setOpen(true)} {...(name && { "aria-label": name })}>
        {label}
      </Button>
      <Dialog title={title} isOpen={isOpen} onClose={() => setOpen(false)}>
        <p class="state-text">{text}</p>
        {error && <ErrorState error={error} />}
        <div class="actions">
          <Button kind="danger" busy={isBusy} onClick={() => void confirm()}>
            {label}
          </Button>
          <Button onClick={() => setOpen(false)}>Keep</Button>
        </div>
      </Dialog>
    </>
  );
}
