/** Schemas of tools, which anybody may have written, as one level of properties for a form. */
import { isRecord } from "../../errors";
import type { JsonSchema } from "../../schema";

export interface FlatSchema {
  schema: JsonSchema;
  /** Return the arguments of flat values. */
  nest: (values: Readonly<Record<string, unknown>>) => Record<string, unknown>;
  /** Return the flat values of arguments; null if the form would lose something of them. */
  flatten: (value: Readonly<Record<string, unknown>>) => Record<string, unknown> | null;
}

/** Deeper objects, and what is beyond a number of properties, are written as JSON. */
const MOST_LEVELS = 3;
const MOST_PROPERTIES = 60;
const SEPARATOR = " › ";

/** Return a schema without references and inner objects, or null if only JSON can express its values. */
export function flatSchema(root: JsonSchema): FlatSchema | null {
  const paths = new Map<string, readonly string[]>();
  const properties: [string, unknown][] = [];
  const required: string[] = [];
  const visit = (schema: JsonSchema, before: readonly string[], isNeeded: boolean) => {
    const needed = Array.isArray(schema["required"]) ? schema["required"] : [];
    for (const [name, given] of Object.entries(propertiesOf(schema))) {
      const path = [...before, name];
      const inner = simplify(given, root);
      const isRequired = isNeeded && needed.includes(name);
      const isGroup = typeOf(inner) === "object" && Object.keys(propertiesOf(inner)).length > 0;
      if (isGroup && path.length < MOST_LEVELS) visit(inner, path, isRequired);
      else {
        const flat = path.join(SEPARATOR);
        paths.set(flat, path);
        properties.push([flat, "const" in inner ? { ...inner, enum: [inner["const"]] } : inner]);
        if (isRequired) required.push(flat);
      }
      if (properties.length > MOST_PROPERTIES) return;
    }
  };
  visit(root, [], true);
  if (properties.length > MOST_PROPERTIES || paths.size < properties.length) return null;
  const schema = { type: "object", properties: Object.fromEntries(properties) as unknown, required };
  return { schema, nest: (values) => nest(values, paths), flatten: (value) => flatten(value, paths) };
}

function nest(values: Readonly<Record<string, unknown>>, paths: ReadonlyMap<string, readonly string[]>) {
  const whole = new Map<string, unknown>();
  for (const [flat, value] of Object.entries(values)) {
    const path = paths.get(flat) ?? [flat];
    let at = whole;
    for (const name of path.slice(0, -1)) {
      if (!(at.get(name) instanceof Map)) at.set(name, new Map());
      at = at.get(name) as Map<string, unknown>;
    }
    at.set(path.at(-1)!, value);
  }
  return toRecord(whole);
}

/** Return maps as objects. A name may be `__proto__`, so they are not assigned. */
function toRecord(map: ReadonlyMap<string, unknown>): Record<string, unknown> {
  return Object.fromEntries([...map].map(([name, value]) => [name, value instanceof Map ? toRecord(value) : value]));
}

function flatten(value: Readonly<Record<string, unknown>>, paths: ReadonlyMap<string, readonly string[]>) {
  const flat = [...paths].flatMap(([name, path]): [string, unknown][] => {
    const found = path.reduce<unknown>(
      (at, part) => (isRecord(at) && Object.hasOwn(at, part) ? at[part] : undefined),
      value,
    );
    return found === undefined ? [] : [[name, found]];
  });
  const values = Object.fromEntries(flat);
  return JSON.stringify(sorted(nest(values, paths))) === JSON.stringify(sorted(value)) ? values : null;
}

/** Return a value with the names of its objects in order, to compare it. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (!isRecord(value)) return value;
  return Object.keys(value)
    .toSorted()
    .map((name) => [name, sorted(value[name])]);
}

/** Follow references in the same document, and choose the part of a union that is not null. */
function simplify(given: unknown, root: JsonSchema): JsonSchema {
  let schema = asRecord(given);
  for (let turn = 0; turn < 5; turn += 1) {
    const { $ref: reference, anyOf, oneOf, ...rest } = schema;
    const union = [anyOf, oneOf].find(Array.isArray) as unknown[] | undefined;
    const parts = union?.filter((part) => !isRecord(part) || part["type"] !== "null");
    if (parts?.length === 1) schema = { ...asRecord(parts[0]), ...rest };
    else if (typeof reference === "string" && reference.startsWith("#/")) {
      schema = { ...asRecord(lookUp(root, reference)), ...rest };
    } else break;
  }
  return schema;
}

function lookUp(root: JsonSchema, reference: string): unknown {
  const parts = reference.slice(2).split("/");
  return parts
    .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"))
    .reduce<unknown>((at, part) => (isRecord(at) && Object.hasOwn(at, part) ? at[part] : undefined), root);
}

function typeOf({ type, properties }: JsonSchema): unknown {
  if (Array.isArray(type)) return type.filter((each) => each !== "null")[0];
  return type ?? (isRecord(properties) ? "object" : undefined);
}

const propertiesOf = (schema: JsonSchema): Record<string, unknown> => asRecord(schema["properties"]);

const asRecord = (value: unknown): Record<string, unknown> => (isRecord(value) ? value : {});
