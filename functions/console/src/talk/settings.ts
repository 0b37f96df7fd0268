/** Settings that are edited in a form and as JSON at the same time. */
import { useRef } from "preact/hooks";
import type { FieldProblem } from "../errors";
import { isRecord } from "../errors";
import { parseJson } from "../schema";
import { useDraft } from "./draft";

export type Values = Readonly<Record<string, unknown>>;

export interface Settings {
  /** The last ones that were JSON. */
  values: Values;
  text: string;
  /** Why the text is not JSON of an object; "" if it is. */
  problem: string;
  setText: (text: string) => void;
  /** Set the value at a path such as `text.format`; undefined removes it. */
  set: (path: string, value: unknown) => void;
  forget: () => void;
}

/** Keep settings of this tab under a name. */
export function useSettings(name: string, initial: Values): Settings {
  const draft = useDraft(name, print(initial));
  const valid = useRef(initial);
  let problem = "";
  try {
    const value = parseJson(draft.text);
    if (isRecord(value)) valid.current = value;
    else problem = "This is not a JSON object.";
  } catch (error) {
    problem = error instanceof Error ? error.message : String(error);
  }
  return {
    values: valid.current,
    text: draft.text,
    problem,
    setText: draft.set,
    set: (path, value) => draft.set(print(setAt(valid.current, path.split("."), value))),
    forget: () => {
      draft.hide();
      draft.forget();
    },
  };
}

export function print(value: unknown): string {
  return JSON.stringify(value, null, 2);
}

export function valueAt(values: Values, path: string): unknown {
  return path.split(".").reduce<unknown>((value, name) => (isRecord(value) ? value[name] : undefined), values);
}

export function textAt(values: Values, path: string): string {
  const value = valueAt(values, path);
  return typeof value === "string" || typeof value === "number" ? String(value) : "";
}

export function listAt(values: Values, path: string): readonly unknown[] {
  const value = valueAt(values, path);
  return Array.isArray(value) ? value : [];
}

/** Return values with one at a path. Objects that get empty are removed with it. */
function setAt(values: Values, [name, ...rest]: string[], value: unknown): Values {
  const next: Record<string, unknown> = { ...values };
  const inner = next[name!];
  const set = rest.length === 0 ? value : setAt(isRecord(inner) ? inner : {}, rest, value);
  const isEmpty = set === undefined || (rest.length > 0 && isRecord(set) && Object.keys(set).length === 0);
  if (isEmpty) delete next[name!];
  else next[name!] = set;
  return next;
}

/** Return the words for a field, from the errors at it and inside it. */
export function problemAt(problems: readonly FieldProblem[], path: string): string {
  return problems
    .filter(({ field }) => field === path || field.startsWith(`${path}.`))
    .map(({ field, message }) => (field === path ? message : `${field.slice(path.length + 1)}: ${message}`))
    .join(" ");
}
