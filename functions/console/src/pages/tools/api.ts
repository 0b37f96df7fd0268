/** What the pages of tools read. */
import { signal } from "@preact/signals";
import type { Schemas } from "../../api";
import { fillPath } from "../../router";
import { parseJson } from "../../schema";

export type Group = Schemas["ToolGroupEntry"];
export type Tool = Schemas["Tool"];

export const MCP = "model-context-protocol";

export const groupPath = (group: string): string => fillPath("/tools/:group", { group });
export const toolPath = (group: string, tool: string): string => fillPath("/tools/:group/:tool", { group, tool });

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
