/** Fields of settings, by the path of their value. */
import type { ComponentChildren, JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import { Check } from "../components/check";
import { ChoiceField, Field, TextField } from "../components/field";
import type { FieldProblem } from "../errors";
import { parseJson } from "../schema";
import { listAt, print, problemAt, type Settings, textAt, valueAt } from "./settings";

export interface SettingProps {
  settings: Settings;
  problems: readonly FieldProblem[];
  /** What the API calls the object with these settings, before a dot. */
  prefix?: string;
  path: string;
  label: string;
  hint?: string;
}

function problemOf({ problems, prefix, path }: SettingProps): string {
  return problemAt(problems, prefix ? `${prefix}.${path}` : path);
}

function common(props: SettingProps): { label: string; hint?: string; error: string } {
  return { label: props.label, ...(props.hint && { hint: props.hint }), error: problemOf(props) };
}

/** A text. An empty one is removed, unless `keepsEmpty`. */
export function TextSetting(
  props: SettingProps & { rows?: number; keepsEmpty?: boolean; placeholder?: string },
): JSX.Element {
  const { settings, path, rows = 1, keepsEmpty = false, placeholder = "" } = props;
  const change = (text: string) => settings.set(path, text || keepsEmpty ? text : undefined);
  return (
    <TextField
      {...common(props)}
      rows={rows}
      placeholder={placeholder}
      value={textAt(settings.values, path)}
      onText={change}
    />
  );
}

export function NumberSetting(props: SettingProps & { min?: number; max?: number; step?: number }): JSX.Element {
  const { settings, path, min, max, step = 1 } = props;
  return (
    <Field {...common(props)}>
      {(ids) => (
        <input
          {...ids}
          type="number"
          min={min}
          max={max}
          step={step}
          value={textAt(settings.values, path)}
          onInput={({ currentTarget: { value, valueAsNumber } }) => {
            if (value === "" || Number.isFinite(valueAsNumber))
              settings.set(path, value === "" ? undefined : valueAsNumber);
          }}
        />
      )}
    </Field>
  );
}

/** A choice. `""` is the choice of no value. */
export function ChoiceSetting(
  props: SettingProps & { choices: readonly (readonly [string, string])[]; onChange?: (value: string) => void },
): JSX.Element {
  const { settings, path, choices, onChange } = props;
  const value = textAt(settings.values, path);
  const isKnown = choices.some(([each]) => each === value);
  return (
    <ChoiceField
      {...common(props)}
      value={value}
      choices={isKnown ? choices : [[value, value || "choose"], ...choices]}
      onChoose={onChange ?? ((chosen) => settings.set(path, chosen || undefined))}
    />
  );
}

/** A value as JSON. What is not JSON stays in the field, and the value as it was. */
export function JsonSetting(props: SettingProps & { rows?: number; placeholder?: string }): JSX.Element {
  const { settings, path, rows = 4, placeholder = "" } = props;
  const value = valueAt(settings.values, path);
  return (
    <JsonField
      {...common(props)}
      rows={rows}
      placeholder={placeholder}
      value={value}
      onChange={(next) => settings.set(path, next)}
    />
  );
}

interface JsonFieldProps {
  label: string;
  hint?: string;
  error: string;
  rows: number;
  placeholder: string;
  value: unknown;
  onChange: (value: unknown) => void;
}

export function JsonField({ label, hint, error, rows, placeholder, value, onChange }: JsonFieldProps): JSX.Element {
  const [text, setText] = useState(() => (value === undefined ? "" : print(value)));
  const [problem, setProblem] = useState("");
  const known = useRef(JSON.stringify(value));
  // The value has been changed elsewhere.
  if (known.current !== JSON.stringify(value)) {
    known.current = JSON.stringify(value);
    setText(value === undefined ? "" : print(value));
    setProblem("");
  }
  const change = (next: string) => {
    setText(next);
    try {
      const read = next.trim() ? parseJson(next) : undefined;
      known.current = JSON.stringify(read);
      setProblem("");
      onChange(read);
    } catch (failure) {
      setProblem(failure instanceof Error ? failure.message : String(failure));
    }
  };
  return (
    <TextField
      label={label}
      hint={hint ?? ""}
      error={problem || error}
      class="mono"
      rows={rows}
      spellcheck={false}
      placeholder={placeholder}
      value={text}
      onText={change}
    />
  );
}

/** A list of names to choose from. Those that are set but not offered are shown, too. */
export function NamesSetting(props: SettingProps & { names: readonly string[]; empty: string }): JSX.Element {
  const { settings, path, names, empty, label, hint } = props;
  const chosen = listAt(settings.values, path).filter((each): each is string => typeof each === "string");
  const all = [...new Set([...names, ...chosen])];
  const toggle = (name: string, isOn: boolean) => {
    const next = isOn ? [...chosen, name] : chosen.filter((each) => each !== name);
    settings.set(path, next.length > 0 ? next : undefined);
  };
  return (
    <Group label={label} error={problemOf(props)} {...(hint && { hint })}>
      {all.length === 0 && <p class="hint">{empty}</p>}
      {all.slice(0, 200).map((name) => (
        <Check key={name} label={name} isOn={chosen.includes(name)} onChange={(isOn) => toggle(name, isOn)} />
      ))}
    </Group>
  );
}

interface GroupProps {
  label: string;
  hint?: string;
  error?: string;
  children: ComponentChildren;
}

export function Group({ label, hint, error, children }: GroupProps): JSX.Element {
  return (
    <fieldset class="group">
      <legend>{label}</legend>
      {hint && <p class="hint">{hint}</p>}
      {children}
      {error && (
        <p class="field-error" role="alert">
          {error}
        </p>
      )}
    </fieldset>
  );
}

/** The same settings as JSON. */
export function SettingsJson({ settings, label }: { settings: Settings; label: string }): JSX.Element {
  return (
    <TextField
      label={label}
      hint="Both sides are the same: change either."
      error={settings.problem}
      class="mono settings-json"
      rows={24}
      spellcheck={false}
      value={settings.text}
      onText={settings.setText}
    />
  );
}
