import type { JSX } from "preact";
import type { FieldTexts, SchemaField } from "../schema";
import { toText } from "../schema";
import { type ControlIds, Field } from "./field";

interface SchemaFormProps {
  fields: readonly SchemaField[];
  texts: FieldTexts;
  problems?: FieldTexts;
  /** Without it, the values can be read only. */
  onChange?: (texts: FieldTexts) => void;
}

/** A field for each property of a JSON schema. Nested values are JSON. */
export function SchemaForm({ fields, texts, problems = {}, onChange }: SchemaFormProps): JSX.Element {
  return (
    <div class="schema-form">
      {fields.map((field) => (
        <Field
          key={field.name}
          label={field.isRequired ? `${field.name} (required)` : field.name}
          hint={field.description.slice(0, 1000)}
          error={problems[field.name] ?? ""}
        >
          {(ids) => (
            <Control
              ids={ids}
              field={field}
              value={texts[field.name] ?? ""}
              onInput={onChange && ((text) => onChange({ ...texts, [field.name]: text }))}
            />
          )}
        </Field>
      ))}
    </div>
  );
}

interface ControlProps {
  ids: ControlIds;
  field: SchemaField;
  value: string;
  onInput: ((text: string) => void) | undefined;
}

function Control({ ids, field, value, onInput }: ControlProps): JSX.Element {
  const { type, choices, isRequired } = field;
  const common = { ...ids, value, "aria-required": isRequired, readOnly: !onInput };
  if (onInput && (type === "choice" || type === "boolean")) {
    const values = type === "boolean" ? ["true", "false"] : choices.map((choice) => toText(choice, type));
    return (
      <select {...ids} value={value} aria-required={isRequired} onChange={(e) => onInput(e.currentTarget.value)}>
        <option value="">no value</option>
        {values.map((each) => (
          <option key={each}>{each}</option>
        ))}
      </select>
    );
  }
  if (type === "json" || value.length > 60 || value.includes("\n")) {
    return (
      <textarea
        {...common}
        class={type === "json" ? "mono" : ""}
        rows={3}
        spellcheck={type !== "json"}
        onInput={(e) => onInput?.(e.currentTarget.value)}
      />
    );
  }
  const isNumber = type === "number" || type === "integer";
  return (
    <input {...common} inputMode={isNumber ? "decimal" : "text"} onInput={(e) => onInput?.(e.currentTarget.value)} />
  );
}
