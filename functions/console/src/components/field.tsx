import type { JSX } from "preact";
import { useId } from "./use-id";

interface FieldProps {
  label: string;
  hint?: string;
  error?: string;
  /** Render the control with the ids that connect it to its label, hint and error. */
  children: (control: ControlIds) => JSX.Element;
}

export interface ControlIds {
  id: string;
  "aria-describedby"?: string;
  "aria-invalid"?: boolean;
}

export function Field({ label, hint, error, children }: FieldProps): JSX.Element {
  const id = useId("field");
  const described = [hint && `${id}-hint`, error && `${id}-error`].filter(Boolean).join(" ");
  const ids: ControlIds = {
    id,
    ...(described && { "aria-describedby": described }),
    ...(error && { "aria-invalid": true }),
  };
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children(ids)}
      {hint && (
        <p class="hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
      {error && (
        <p class="field-error" id={`${id}-error`} role="alert">
          {error}
        </p>
      )}
    </div>
  );
}
