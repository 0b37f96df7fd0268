import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { Button } from "./button";
import { ConfirmDialog } from "./confirm";

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
  return (
    <>
      <Button kind={kind} onClick={() => setOpen(true)} {...(name && { "aria-label": name })}>
        {label}
      </Button>
      <ConfirmDialog title={title} isOpen={isOpen} onClose={() => setOpen(false)} action={label} onConfirm={onConfirm}>
        <p class="state-text">{text}</p>
      </ConfirmDialog>
    </>
  );
}
