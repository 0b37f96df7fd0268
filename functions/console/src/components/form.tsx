import type { ComponentChildren, JSX } from "preact";
import type { Action } from "./action";
import { Button } from "./button";
import { ErrorState } from "./states";

interface FormProps {
  action: Action;
  /** The words of the button that sends the form. */
  label: string;
  kind?: "primary" | "danger";
  disabled?: boolean;
  /** The form says itself what is wrong. */
  noValidate?: boolean;
  onCancel?: () => void;
  /** What stands beside the buttons. */
  beside?: ComponentChildren;
  children?: ComponentChildren;
}

/** A form with its error and its buttons. What harms is not the first button that the keyboard reaches. */
export function Form(props: FormProps): JSX.Element {
  const { action, label, kind = "primary", disabled = false, noValidate = false, onCancel, beside, children } = props;
  const cancel = onCancel && (
    <Button onClick={onCancel} disabled={action.isBusy}>
      Cancel
    </Button>
  );
  return (
    <form class="stack" noValidate={noValidate} onSubmit={action.run}>
      {children}
      {action.error && <ErrorState error={action.error} />}
      <div class="actions">
        {kind === "danger" && cancel}
        <Button type="submit" kind={kind} busy={action.isBusy} disabled={disabled}>
          {label}
        </Button>
        {kind !== "danger" && cancel}
        {beside}
      </div>
    </form>
  );
}
