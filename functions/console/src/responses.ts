/** Start a response, and follow one that runs. */
import { type Body, type Schemas, send } from "./api";
import { follow } from "./stream";

export type ResponseEvent = Schemas["ResponseStreamEvent"];

const RESPONSE = "/v1/responses";

interface FollowOptions {
  onBreak?: () => void;
  onPosition?: (position: string) => void;
  signal?: AbortSignal;
  headers?: Readonly<Record<string, string>>;
}

/** Start a response, and yield its events until it ends. */
export function startResponse(
  body: Partial<Body<"post", typeof RESPONSE>>,
  { headers = {}, ...options }: FollowOptions = {},
): AsyncGenerator<ResponseEvent> {
  const request = { headers, ...withSignal(options) };
  return events(null, () => send("POST", RESPONSE, { ...body, stream: true }, request), options);
}

/** Yield the events of a response from its beginning, or after one of them. */
export function followResponse(
  id: string,
  after: string | null,
  options: FollowOptions = {},
): AsyncGenerator<ResponseEvent> {
  return events(id, () => reopen(id, after, options), options);
}

async function* events(
  known: string | null,
  open: () => Promise<Response>,
  options: FollowOptions,
): AsyncGenerator<ResponseEvent> {
  let id = known;
  const documents = follow<ResponseEvent>({
    open,
    reopen: (after) => (id ? reopen(id, after, options) : null),
    positionOf: (_, document) => String(document.sequence_number ?? ""),
    isLast: ({ type }) => LAST.has(type ?? ""),
    ...options,
  });
  for await (const document of documents) {
    if (document.type === "response.created" || document.type === "response.queued") id = document.response.id;
    yield document;
  }
}

const LAST: ReadonlySet<string> = new Set(["response.completed", "response.incomplete", "response.failed"]);

function reopen(id: string, after: string | null, options: FollowOptions): Promise<Response> {
  const query = { stream: true, starting_after: after };
  return send("GET", `${RESPONSE}/{response_id}`, undefined, {
    params: { response_id: id },
    query,
    ...withSignal(options),
  });
}

function withSignal({ signal }: FollowOptions): { signal?: AbortSignal } {
  return signal ? { signal } : {};
}
