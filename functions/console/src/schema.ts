/** Forms of JSON schemas: which fields there are, and their values. */
import type { Schemas } from "./api";
import { isRecord } from "./errors";

export type JsonSchema = Readonly<Record<string, unknown>>;
export type FieldType = "text" | "number" | "integer" | "boolean" | "choice" | "json";

export interface SchemaField {
  name: string;
  type: FieldType;
  description: string;
  isRequired: boolean;
  choices: readonly unknown[];
  initial: string;
}

const MOST_FIELDS = 100;

/** What is in the fields, as text. "" is a field without a value. */
export type FieldTexts = Readonly<Record<string, string>>;

/** Return the fields of the schema of an object. Without fields, as for more than 100, its JSON is typed as a whole. */
export function fieldsOf(schema: JsonSchema): readonly SchemaField[] {
  const properties = isRecord(schema["properties"]) ? schema["properties"] : {};
  const required = Array.isArray(schema["required"]) ? schema["required"] : [];
  const entries = Object.entries(properties);
  if (entries.length > MOST_FIELDS) return [];
  return entries.map(([name, each]) => toField(name, isRecord(each) ? each : {}, required.includes(name)));
}

function toField(name: string, schema: JsonSchema, isRequired: boolean): SchemaField {
  const choices = Array.isArray(schema["enum"]) ? schema["enum"].slice(0, 500) : [];
  const type = choices.length > 0 ? "choice" : typeOf(schema);
  const value = schema["default"];
  const initial = value === undefined || value === null ? "" : toText(value, type);
  return { name, type, description: String(schema["description"] ?? ""), isRequired, choices, initial };
}

function typeOf({ type }: JsonSchema): FieldType {
  const name = Array.isArray(type) ? type.find((each) => each !== "null") : type;
  if (name === "string" || name === "str") return "text";
  if (name === "number" || name === "float") return "number";
  if (name === "integer" || name === "int") return "integer";
  if (name === "boolean" || name === "bool") return "boolean";
  return "json";
}

export function toText(value: unknown, type: FieldType): string {
  if (value === undefined) return "";
  if (typeof value === "string" && type !== "json") return value;
  return type === "json" ? JSON.stringify(value, null, 2) : JSON.stringify(value);
}

/** Return the schema of the parameters of a tool of Llama Stack's API. */
export function schemaOfParameters(parameters: readonly Schemas["ToolParameter"][]): JsonSchema {
  const properties = parameters.map((each) => [
    each.name,
    { type: each.parameter_type, description: each.description, default: each.default },
  ]);
  const required = parameters.filter((each) => each.required !== false).map((each) => each.name);
  return { type: "object", properties: Object.fromEntries(properties) as unknown, required };
}

/** Return the value of the fields, and what is wrong with them by name. */
export function readFields(fields: readonly SchemaField[], texts: FieldTexts): [Record<string, unknown>, FieldTexts] {
  const value: Record<string, unknown> = {};
  const problems: Record<string, string> = {};
  for (const field of fields) {
    const text = texts[field.name] ?? "";
    if (text === "" && !(field.type === "text" && field.isRequired)) {
      if (field.isRequired) problems[field.name] = "This field needs a value.";
      continue;
    }
    try {
      value[field.name] = readField(field, text);
    } catch (error) {
      problems[field.name] = error instanceof Error ? error.message : String(error);
    }
  }
  return [value, problems];
}

function readField({ type, choices }: SchemaField, text: string): unknown {
  if (type === "text") return text;
  if (type === "choice") return choices.find((choice) => toText(choice, type) === text);
  if (type === "boolean") return text === "true";
  if (type === "json") return parseJson(text);
  const number = Number(text);
  if (!Number.isFinite(number)) throw new Error("This is not a number.");
  if (type === "integer" && !Number.isInteger(number)) throw new Error("This is not a whole number.");
  return number;
}

/** Read JSON. Raises Error with words for the author. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    throw new Error(`This is not JSON: ${error instanceof Error ? error.message : ""}`);
  }
}
