import type { ComponentChildren, JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { toApiError } from "../errors";
import { Button } from "./button";
import { Dialog } from "./dialog";
import { Field } from "./field";

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
export function ConfirmDialog({ title, isOpen, onClose, children, ...form }: ConfirmProps): JSX.Element {
  const [isBusy, setBusy] = useState(false);
  return (
    <Dialog title={title} isOpen={isOpen} {...(!isBusy && { onClose })}>
      {children}
      <ConfirmForm {...form} onClose={onClose} isBusy={isBusy} setBusy={setBusy} />
    </Dialog>
  );
}

type FormProps = Pick<ConfirmProps, "action" | "typed" | "typedLabel" | "onConfirm" | "onClose"> & {
  isBusy: boolean;
  setBusy: (isBusy: boolean) => void;
};

function ConfirmForm({
  action,
  typed,
  typedLabel = "Type the name to confirm",
  onConfirm,
  onClose,
  isBusy,
  setBusy,
}: FormProps): JSX.Element {
  const [text, setText] = useState("");
  const [error, setError] = useState("");
  useEffect(() => setText(""), [typed]);
  const isReady = typed === undefined || text === typed;
  const submit = async (event: Event) => {
    event.preventDefault();
    if (!isReady || isBusy) return;
    setBusy(true);
    setError("");
    try {
      await onConfirm();
      onClose();
    } catch (failure) {
      setError(toApiError(failure).message);
    } finally {
      setBusy(false);
    }
  };
  return (
    <form class="stack" onSubmit={(event) => void submit(event)}>
      {typed !== undefined && (
        <Field label={typedLabel} hint={typed}>
          {(ids) => (
            <input
              {...ids}
              autoComplete="off"
              spellcheck={false}
              value={text}
              onInput={(event) => setText(event.currentTarget.value)}
            />
          )}
        </Field>
      )}
      {error && (
        <p class="field-error" role="alert">
          {error}
        </p>
      )}
      <div class="actions">
        <Button onClick={onClose} disabled={isBusy}>
          Cancel
        </Button>
        <Button type="submit" kind="danger" busy={isBusy} disabled={!isReady}>
          {action}
        </Button>
      </div>
    </form>
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
