/** The items of a response, from its events or as it was stored. */
import type { Schemas } from "../api";
import { imageUrl } from "./content";
import type { CallPart, CallStatus, Citation, Transcript } from "./transcript";

export type Response_ = Schemas["Response"];
export type ResponseEvent = Schemas["ResponseStreamEvent"];
type Item = NonNullable<Response_["output"]>[number];
type Annotation = Schemas["AnnotationAdded"]["annotation"];

/** Show the event of a response. */
export function addResponseEvent(to: Transcript, event: ResponseEvent): void {
  switch (event.type) {
    case "response.output_item.added":
      return addItem(to, event.item, false);
    case "response.output_item.done":
      return addItem(to, event.item, true);
    case "response.output_text.delta":
      return to.append(`${event.item_id}:${event.content_index}`, "text", event.delta);
    case "response.refusal.delta":
      return to.append(`${event.item_id}:${event.content_index}`, "refusal", event.delta);
    case "response.reasoning_summary_text.delta":
      return to.append(`${event.item_id}:summary:${event.summary_index}`, "reasoning", event.delta);
    case "response.reasoning_text.delta":
      return to.append(`${event.item_id}:content:${event.content_index}`, "reasoning", event.delta);
    case "response.function_call_arguments.delta":
    case "response.mcp_call_arguments.delta":
    case "response.code_interpreter_call_code.delta":
      return appendInput(to, event.item_id, event.delta);
    case "response.output_text.annotation.added":
      return addCitation(to, `${event.item_id}:${event.content_index}`, event.annotation);
    case "response.image_generation_call.partial_image":
      return to.change(event.item_id, "call", { images: [imageUrl(event.partial_image_b64)] });
    case "response.completed":
    case "response.incomplete":
    case "response.failed":
      for (const item of event.response.output ?? []) addItem(to, item, true);
  }
}

/** Show a response as it was stored. */
export function addResponse(to: Transcript, response: Response_): void {
  for (const item of response.output ?? []) addItem(to, item, true);
}

function addItem(to: Transcript, item: Item, isDone: boolean): void {
  const id = item.id ?? "";
  switch (item.type) {
    case "reasoning":
      item.summary?.forEach(({ text }, index) => addReasoning(to, `${id}:summary:${index}`, text, isDone));
      item.content?.forEach(({ text }, index) => addReasoning(to, `${id}:content:${index}`, text, isDone));
      return;
    case "mcp_list_tools":
      return to.put(id, {
        kind: "note",
        title: item.error
          ? `${item.server_label} did not list its tools: ${item.error}`
          : `${item.server_label} offers ${item.tools?.length ?? 0} ${item.tools?.length === 1 ? "tool" : "tools"}`,
        lines: (item.tools ?? []).map(({ name, description }) => (description ? `${name}: ${description}` : name)),
        isFailed: Boolean(item.error),
      });
    case "mcp_approval_request": {
      const { server_label: server, name, arguments: input } = item;
      return to.put(id, { kind: "approval", requestId: id, server, name, input });
    }
    case "compaction":
      return to.put(id, { kind: "note", title: "What came before was summarized", lines: [], isFailed: false });
    case "message":
    case undefined:
      return addMessage(to, id, item as Schemas["Message"], isDone);
    default:
      return addCall(to, id, item as CallItem, isDone);
  }
}

function addReasoning(to: Transcript, id: string, text: string, isDone: boolean): void {
  if (text || to.get(id)) to.put(id, { kind: "reasoning", text, citations: [], isDone });
}

function addMessage(to: Transcript, id: string, { content }: Schemas["Message"], isDone: boolean): void {
  if (typeof content === "string") return to.put(`${id}:0`, { kind: "text", text: content, citations: [], isDone });
  content.forEach((part, index) => {
    if (part.type === "output_text") {
      const citations = (part.annotations ?? []).map(toCitation);
      to.put(`${id}:${index}`, { kind: "text", text: part.text, citations, isDone });
    } else if (part.type === "refusal") {
      to.put(`${id}:${index}`, { kind: "refusal", text: part.refusal, citations: [], isDone });
    }
  });
}

function addCitation(to: Transcript, id: string, annotation: Annotation): void {
  const before = to.get(id);
  if (before?.kind === "text") to.put(id, { ...before, citations: [...before.citations, toCitation(annotation)] });
}

function toCitation(annotation: Annotation): Citation {
  if (annotation.type === "url_citation")
    return { title: annotation.title || annotation.url, url: annotation.url, index: annotation.end_index };
  const { filename } = annotation;
  return { title: filename, url: null, index: "index" in annotation ? annotation.index : annotation.end_index };
}

type CallItem = Exclude<
  Item,
  { type?: "message" | "reasoning" | "mcp_list_tools" | "mcp_approval_request" | "compaction" }
>;

function addCall(to: Transcript, id: string, item: CallItem, isDone: boolean): void {
  const before = to.get(id);
  const status = statusOf(item.status, isDone);
  const base = { kind: "call", callId: id, output: null, images: [], error: "", status } as const;
  const call = { ...base, ...(before?.kind === "call" ? { images: before.images } : {}), ...detailsOf(item) };
  to.put(id, { ...call, status: item.type === "function_call" && isDone ? "waiting" : call.status } as CallPart);
}

function statusOf(status: string | undefined, isDone: boolean): CallStatus {
  if (status === "failed" || status === "incomplete") return status;
  return isDone || status === "completed" ? "completed" : "running";
}

function detailsOf(item: CallItem): Partial<CallPart> {
  switch (item.type) {
    case "mcp_call": {
      const { error } = item;
      const words = error ? error.message || JSON.stringify(error.content ?? error) : "";
      return {
        label: `MCP server ${item.server_label}`,
        name: item.name,
        input: item.arguments,
        output: item.output ?? null,
        error: words,
        ...(error ? { status: "failed" as const } : {}),
      };
    }
    case "file_search_call":
      return {
        label: "Search in documents",
        name: "",
        input: (item.queries ?? []).join("\n"),
        output: resultsOf(item),
      };
    case "web_search_call": {
      const { query, queries, sources } = item.action ?? {};
      const found = (sources ?? []).map(({ url }) => url).join("\n");
      return { label: "Web search", name: "", input: queries?.join("\n") ?? query ?? "", output: found || null };
    }
    case "image_generation_call":
      return {
        label: "Image",
        name: "",
        input: item.revised_prompt ?? "",
        ...(item.result ? { images: [imageUrl(item.result)] } : {}),
      };
    case "code_interpreter_call": {
      const outputs = item.outputs ?? [];
      const logs = outputs.map((output) => ("logs" in output ? output.logs : "")).join("");
      const images = outputs.flatMap((output) => ("url" in output ? [output.url] : []));
      return { label: "Code", name: "", input: item.code ?? "", output: logs || null, images };
    }
    default:
      return { label: "Function", name: item.name, callId: item.call_id, input: item.arguments };
  }
}

function resultsOf({ results }: Schemas["FileSearchCall"]): string | null {
  if (!results) return null;
  return results
    .map(({ filename, score, text }) => `${filename}, score ${score?.toFixed(2) ?? "?"}\n${text ?? ""}`)
    .join("\n\n");
}

function appendInput(to: Transcript, id: string, text: string): void {
  const before = to.get(id);
  if (before?.kind === "call") to.put(id, { ...before, input: before.input + text });
}

/** Return the calls of functions and the approvals that a response waits for. */
export function openItems(response: Response_): {
  calls: Schemas["FunctionCall"][];
  approvals: Schemas["McpApprovalRequest"][];
} {
  const output = response.status === "completed" || response.status === "incomplete" ? (response.output ?? []) : [];
  return {
    calls: output.filter((item): item is Schemas["FunctionCall"] => item.type === "function_call"),
    approvals: output.filter((item): item is Schemas["McpApprovalRequest"] => item.type === "mcp_approval_request"),
  };
}
