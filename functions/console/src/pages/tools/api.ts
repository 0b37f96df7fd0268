/** What the pages of tools read. */
import { signal } from "@preact/signals";
import type { Schemas } from "../../api";
import { isRecord } from "../../errors";
import { fillPath } from "../../router";
import { parseJson } from "../../schema";

export type Group = Schemas["ToolGroupEntry"];
export type Tool = Schemas["Tool"];

export const MCP = "model-context-protocol";

export const groupPath = (group: string): string => fillPath("/tools/:group", { group });
export const toolPath = (group: string, tool: string): string => fillPath("/tools/:group/:tool", { group, tool });

/** Providers whose tools are in the args, with the field of a tool that names what is called. */
const TARGETS: Readonly<Record<string, readonly [kind: string, field: string]>> = {
  "lambda-function": ["Lambda function", "function"],
  "remote-execution": ["HTTP endpoint", "url"],
};

/** Return what the tools of a toolgroup call: a kind in words, and names. Both are empty for a part of Stint. */
export function targetsOf({ provider_id, mcp_endpoint, args }: Group): { kind: string; names: readonly string[] } {
  if (mcp_endpoint) return { kind: "", names: [mcp_endpoint.uri] };
  const [kind, field] = TARGETS[provider_id] ?? ["", ""];
  const tools: readonly unknown[] = field && Array.isArray(args?.["tools"]) ? args["tools"] : [];
  const names = tools.filter(isRecord).map((tool) => tool[field]);
  return { kind, names: [...new Set(names.filter((name) => typeof name === "string"))] };
}

/** The reader's own credentials for tools, as JSON. They live as long as the page, and go to the API with each call. */
export const providerData = signal("");

/** Return the header with the reader's credentials. */
export function ownCredentials(): Record<string, string> {
  const text = providerData.value.trim();
  if (!text || faultOf(text)) return {};
  // A header has no characters beyond Latin-1, and JSON can escape them.
  const escaped = JSON.stringify(JSON.parse(text)).replace(
    /[\u007f-\uffff]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
  return { "x-llamastack-provider-data": escaped };
}

/** Return what is wrong with a text as JSON; an empty text if nothing is. */
export function faultOf(text: string): string {
  try {
    parseJson(text);
    return "";
  } catch (error) {
    return (error as Error).message;
  }
}
