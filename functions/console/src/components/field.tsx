import type { JSX } from "preact";
import { formatName } from "../format";
import { useId } from "./use-id";

interface Labels {
  label: string;
  hint?: string;
  error?: string;
}

interface FieldProps extends Labels {
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
      <label for={id}>{formatName(label)}</label>
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

interface TextFieldProps extends Labels {
  value: string;
  onText: (text: string) => void;
  /** The height of a text of several lines. */
  rows?: number;
  class?: string;
  type?: "number" | "password" | "search" | "text" | "url";
  placeholder?: string;
  autoCapitalize?: "off";
  autoComplete?: "off" | "current-password";
  inputMode?: "decimal" | "numeric";
  maxLength?: number;
  min?: string;
  spellcheck?: boolean;
  step?: string;
}

/** A field of text. */
export function TextField(props: TextFieldProps): JSX.Element {
  const { label, hint = "", error = "", type = "text", onText, rows = 1, ...control } = props;
  return (
    <Field label={label} hint={hint} error={error}>
      {(ids) =>
        rows > 1 ? (
          <textarea {...control} {...ids} rows={rows} onInput={({ currentTarget }) => onText(currentTarget.value)} />
        ) : (
          <input
            {...control}
            {...ids}
            type={type as "text"}
            onInput={({ currentTarget }) => onText(currentTarget.value)}
          />
        )
      }
    </Field>
  );
}

interface ChoiceFieldProps<T> extends Labels {
  value: T;
  /** Values, or values with the words for them. */
  choices: readonly (T | readonly [T, string])[];
  onChoose: (value: T) => void;
}

/** A field whose value is one of some. */
export function ChoiceField<T extends string | number>(props: ChoiceFieldProps<T>): JSX.Element {
  const { label, hint = "", error = "", value, choices, onChoose } = props;
  const pairs = choices.map((each) => (typeof each === "object" ? each : ([each, String(each)] as const)));
  return (
    <Field label={label} hint={hint} error={error}>
      {(ids) => (
        <select
          {...ids}
          value={value}
          onChange={({ currentTarget }) => onChoose(pairs[currentTarget.selectedIndex]![0])}
        >
          {pairs.map(([each, words]) => (
            <option key={each} value={each}>
              {words}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}
