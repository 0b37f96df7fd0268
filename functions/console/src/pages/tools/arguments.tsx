/** The arguments of a tool: a form of its schema, or JSON. */
import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { Button } from "../../components/button";
import { TextField } from "../../components/field";
import { SchemaForm } from "../../components/schema-form";
import { isRecord } from "../../errors";
import { fieldsOf, type FieldTexts, type JsonSchema, parseJson, readFields, toText } from "../../schema";
import { flatSchema } from "./flat-schema";

export interface ArgumentsState {
  /** Return the arguments. If something is wrong, show it and return null. */
  submit: () => Record<string, unknown> | null;
  /** The arguments so far, without those that are wrong. */
  value: Record<string, unknown>;
  form: JSX.Element;
}

export function useArguments(given: JsonSchema): ArgumentsState {
  const flat = useMemo(() => flatSchema(given), [given]);
  const fields = useMemo(() => (flat ? fieldsOf(flat.schema) : []), [flat]);
  const [texts, setTexts] = useState<FieldTexts>(() =>
    Object.fromEntries(fields.map(({ name, initial }) => [name, initial])),
  );
  const [json, setJson] = useState<string | null>(flat ? null : "{}");
  const [isShown, setShown] = useState(false);
  const [error, setError] = useState("");
  const [values, problems] = readFields(fields, texts);
  const read = json === null ? null : readObject(json);
  const value = read ? (read.value ?? {}) : flat!.nest(values);
  const problem = read?.error ?? "";
  const submit = () => {
    setShown(true);
    setError("");
    return problem || (!read && Object.keys(problems).length > 0) ? null : value;
  };
  const toggle = () => {
    setShown(false);
    setError("");
    if (!read || !flat) return setJson(JSON.stringify(value, null, 2));
    const back = read.value && flat.flatten(read.value);
    if (!back) return setError("The form cannot show all of this. It stays as JSON.");
    setTexts(Object.fromEntries(fields.map(({ name, type }) => [name, toText(back[name], type)])));
    return setJson(null);
  };
  const form = (
    <div class="stack">
      {json !== null ? (
        <TextField
          label="Arguments as JSON"
          error={error || (isShown ? problem : "")}
          class="mono"
          rows={6}
          spellcheck={false}
          value={json}
          onText={setJson}
        />
      ) : fields.length === 0 ? (
        <p class="hint">This tool declares no arguments.</p>
      ) : (
        <SchemaForm fields={fields} texts={texts} problems={isShown ? problems : {}} onChange={setTexts} />
      )}
      {flat && (
        <Button kind="quiet" class="form-switch" onClick={toggle}>
          {json === null ? "Write JSON instead" : "Back to the form"}
        </Button>
      )}
    </div>
  );
  return { submit, value, form };
}

function readObject(text: string): { value: Record<string, unknown> | null; error: string } {
  try {
    const value = parseJson(text);
    if (isRecord(value)) return { value, error: "" };
    return { value: null, error: "Write a JSON object, in braces." };
  } catch (error) {
    return { value: null, error: error instanceof Error ? error.message : String(error) };
  }
}
