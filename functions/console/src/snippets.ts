/** Requests as commands. The key is a variable, so that it is never copied. */
import { config } from "./session";

export interface Snippet {
  method: string;
  url: string;
  body?: unknown;
  /** The name of a file to send as a form, with its other fields in `body`. */
  file?: string;
}

export function toCurl({ method, url, body, file }: Snippet): string {
  const parts = ["curl -sS", quote(url)];
  if (method !== "GET" && (method !== "POST" || body === undefined)) parts.splice(1, 0, `-X ${method}`);
  if (config.peek()?.auth !== "none") parts.push('-H "Authorization: Bearer $STINT_API_KEY"');
  if (file !== undefined) {
    parts.push(`-F ${quote(`file=@${file}`)}`);
    parts.push(...Object.entries((body ?? {}) as object).map(([name, value]) => `-F ${quote(`${name}=${value}`)}`));
  } else if (body !== undefined) {
    parts.push("-H 'Content-Type: application/json'", `-d ${quote(JSON.stringify(body, null, 2))}`);
  }
  return parts.join(" \\\n  ");
}

export function toPython({ method, url, body, file }: Snippet): string {
  const needsKey = config.peek()?.auth !== "none";
  const lines = [needsKey ? "import os\n\nimport requests\n" : "import requests\n", "answer = requests.request("];
  lines.push(`    ${literal(method)},`, `    ${literal(url)},`);
  if (needsKey) lines.push('    headers={"Authorization": f"Bearer {os.environ[\'STINT_API_KEY\']}"},');
  if (file !== undefined) lines.push(`    files={"file": open(${literal(file)}, "rb")},`);
  if (body !== undefined) lines.push(`    ${file === undefined ? "json" : "data"}=${literal(body, "    ")},`);
  return [...lines, ")", "answer.raise_for_status()", "print(answer.json())"].join("\n");
}

/** Quote an argument for a POSIX shell. */
function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** Return a value of JSON as a literal of Python. */
function literal(value: unknown, indent = ""): string {
  const inner = `${indent}    `;
  if (value === null || value === undefined) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (Array.isArray(value))
    return block(
      "[",
      value.map((each) => literal(each, inner)),
      "]",
      indent,
    );
  if (typeof value === "object") {
    const items = Object.entries(value).map(([name, each]) => `${JSON.stringify(name)}: ${literal(each, inner)}`);
    return block("{", items, "}", indent);
  }
  return JSON.stringify(value);
}

function block(open: string, items: string[], close: string, indent: string): string {
  if (items.length === 0) return open + close;
  return `${open}\n${items.map((item) => `${indent}    ${item},`).join("\n")}\n${indent}${close}`;
}
