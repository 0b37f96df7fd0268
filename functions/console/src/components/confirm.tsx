import type { ComponentChildren, JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { useAction } from "./action";
import { Dialog } from "./dialog";
import { TextField } from "./field";
import { Form } from "./form";

interface ConfirmProps {
  title: string;
  isOpen: boolean;
  onClose: () => void;
  /** The words of the button that acts. */
  action: string;
  /** A text that must be typed before. */
  typed?: string;
  typedLabel?: string;
  /** The dialog closes when this has succeeded, and shows the error if it fails. */
  onConfirm: () => Promise<void>;
  /** What is hit, and what happens to it. */
  children: ComponentChildren;
}

/** Ask before something is done that cannot be undone, or hits others. */
export function ConfirmDialog(props: ConfirmProps): JSX.Element {
  const { title, isOpen, onClose, action: label, typed, onConfirm, children } = props;
  const [text, setText] = useState("");
  const action = useAction(async () => {
    await onConfirm();
    onClose();
  });
  useEffect(() => {
    setText("");
    action.forget();
  }, [isOpen, typed]);
  return (
    <Dialog title={title} isOpen={isOpen} {...(!action.isBusy && { onClose })}>
      {children}
      <Form
        action={action}
        label={label}
        kind="danger"
        disabled={typed !== undefined && text !== typed}
        onCancel={onClose}
      >
        {typed !== undefined && (
          <TextField
            label={props.typedLabel ?? "Type the name to confirm"}
            hint={typed}
            autoComplete="off"
            spellcheck={false}
            value={text}
            onText={setText}
          />
        )}
      </Form>
    </Dialog>
  );
}

const STEP = 100;
const MOST_STEPS = 50;

/**
 * Give the focus to a heading when the element that has it goes away, so that the keyboard goes on there. A list may
 * lose its row only when it has been read again.
 */
export function keepFocus(id: string, step = 0): void {
  const isLost = !document.activeElement || document.activeElement === document.body;
  if (isLost && !document.querySelector("dialog[open]")) document.getElementById(id)?.focus();
  else if (step < MOST_STEPS) setTimeout(() => keepFocus(id, step + 1), STEP);
}
