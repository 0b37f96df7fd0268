/** Responses as runs. */
import { get, type Schemas } from "../api";
import { ApiError } from "../errors";
import { followResponse, type ResponseEvent } from "../responses";
import { isImage } from "./attachments";
import type { Message } from "./composer";
import { isOwn } from "./content";
import { addResponse, addResponseEvent } from "./response-parts";
import { plain, type Reader, Run, type Sent } from "./run";

export type StoredResponse = Schemas["Response"];
export type ResponseRun = Run<StoredResponse, ResponseEvent>;
export type ResponseBody = Partial<Schemas["CreateResponse"]>;

const READER: Reader<StoredResponse, ResponseEvent> = {
  read: (to, event) => {
    addResponseEvent(to, event);
    if (event.type === "response.created" || event.type === "response.queued") return { id: event.response.id };
    const isLast =
      event.type === "response.completed" || event.type === "response.incomplete" || event.type === "response.failed";
    return isLast ? { document: event.response } : {};
  },
  load: (response_id) => get("/v1/responses/{response_id}", { params: { response_id } }),
  show: addResponse,
  isOpen: ({ status }) => status === "in_progress" || status === "queued",
};

export function newRun(sent: readonly Sent[]): ResponseRun {
  return new Run(READER, sent);
}

/** Return a response as a run, which follows it if it still runs. */
export function runOfResponse(response: StoredResponse, sent: readonly Sent[]): ResponseRun {
  const { id } = response;
  if (!READER.isOpen(response)) return new Run(READER, sent, { id, phase: "ended", document: response });
  const run: ResponseRun = new Run(READER, sent, { id, phase: "running" });
  const after = run.restore();
  void run.follow((options) => followResponse(id, after, options));
  return run;
}

/** Read a response with what was sent to it. Raises ApiError. */
export async function loadRun(id: string): Promise<ResponseRun> {
  const params = { response_id: id };
  const [response, { data }] = await Promise.all([
    get("/v1/responses/{response_id}", { params }),
    get("/v1/responses/{response_id}/input_items", { params, query: { limit: 50, order: "desc" } }),
  ]);
  return runOfResponse(response, sentOf([...data].reverse()));
}

type InputItem = Schemas["ItemList"]["data"][number];

/** Return the newest messages of the user, and what was answered to calls. */
function sentOf(items: readonly InputItem[]): Sent[] {
  const found: Sent[] = [];
  for (const item of items) {
    if (item.type === "function_call_output")
      found.push(plain(`Result: ${typeof item.output === "string" ? item.output : JSON.stringify(item.output)}`));
    else if (item.type === "mcp_approval_response") found.push(plain(item.approve ? "Approved" : "Denied"));
    else if ("role" in item && item.role === "user") found.push(sentOfMessage(item as Schemas["Message"]));
    else if ("role" in item || item.type === "function_call") found.length = 0;
  }
  return found;
}

function sentOfMessage({ content }: Schemas["Message"]): Sent {
  if (typeof content === "string") return plain(content);
  const sent = { text: "", documents: [] as string[], images: [] as string[] };
  for (const part of content) {
    if (part.type === "input_text") sent.text += part.text;
    if (part.type === "input_file") sent.documents.push(part.filename || part.file_id || "file");
    if (part.type === "input_image") {
      if (part.image_url && isOwn(part.image_url)) sent.images.push(part.image_url);
      else sent.documents.push(part.image_url || part.file_id || "image");
    }
  }
  return sent;
}

/** Return the input of a message. */
export function inputOf({ text, attachments }: Message): ResponseBody["input"] {
  if (attachments.length === 0) return text;
  const files = attachments.map((each) =>
    isImage(each)
      ? { type: "input_image", image_url: each.url }
      : { type: "input_file", filename: each.name, file_data: each.url },
  );
  const content = [...(text ? [{ type: "input_text", text }] : []), ...files];
  return [{ type: "message", role: "user", content }] as unknown as ResponseBody["input"];
}

export function failureOfResponse({ status, error, incomplete_details }: StoredResponse): ApiError | null {
  if (error) return new ApiError(0, error.code, error.message);
  if (status === "incomplete") {
    const reason = incomplete_details?.reason ?? "unknown";
    return new ApiError(0, reason, `The response ended early. The limit: ${reason.replaceAll("_", " ")}.`);
  }
  return status === "failed" ? new ApiError(0, "failed", "The response failed.") : null;
}
