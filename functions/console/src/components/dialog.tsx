import type { ComponentChildren, JSX } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { useId } from "./use-id";

interface DialogProps {
  title: string;
  isOpen: boolean;
  /** Escape, or a press beside the dialog. Without it, only a choice in the dialog closes it. */
  onClose?: () => void;
  kind?: "centre" | "wide" | "drawer";
  children: ComponentChildren;
}

/** A modal dialog of the browser, which keeps the focus inside and gives it back. */
export function Dialog({ title, isOpen, onClose, kind = "centre", children }: DialogProps): JSX.Element {
  const ref = useRef<HTMLDialogElement>(null);
  const id = useId("dialog");
  // Before the next event: a late one that says "closed" must find a dialog that was opened again.
  useLayoutEffect(() => {
    const dialog = ref.current;
    if (isOpen && !dialog?.open) dialog?.showModal();
    if (!isOpen && dialog?.open) dialog.close();
  }, [isOpen]);
  return (
    <dialog
      ref={ref}
      class={`dialog dialog-${kind}`}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault();
        onClose?.();
      }}
      onClose={() => {
        // The event is late: the dialog may be open again.
        if (ref.current?.open) return;
        // A browser closes a dialog at the second Escape in any case.
        if (isOpen && onClose) onClose();
        else if (isOpen) ref.current?.showModal();
      }}
      onClick={(event) => {
        if (event.target === ref.current) onClose?.();
      }}
    >
      {isOpen && (
        <div class="dialog-body">
          <h2 id={id}>{title}</h2>
          {children}
        </div>
      )}
    </dialog>
  );
}
