/** Run a turn, and follow one that runs. */
import { type Body, type Schemas, send } from "./api";
import { follow } from "./stream";

export type TurnPayload = Schemas["StreamChunk"]["event"]["payload"];
export type Turn = Schemas["Turn"];

export interface TurnPlace {
  agent_id: string;
  session_id: string;
}

const TURN = "/v1/agents/{agent_id}/session/{session_id}/turn";

export interface FollowOptions {
  onBreak?: () => void;
  onPosition?: (position: string) => void;
  signal?: AbortSignal;
  headers?: Readonly<Record<string, string>>;
}

/** Start a turn, and yield the payloads of its events until it ends or waits for the client. */
export function startTurn(
  at: TurnPlace,
  body: Partial<Body<"post", typeof TURN>>,
  options: FollowOptions = {},
): AsyncGenerator<TurnPayload> {
  const params = { ...at };
  return payloads(
    at,
    null,
    () => send("POST", TURN, { ...body, stream: true }, withSignal({ params }, options)),
    options,
  );
}

export type TurnAnswers = Pick<Body<"post", `${typeof TURN}/{turn_id}/resume`>, "tool_responses" | "approvals">;

/** Answer the calls that a turn waits for, and yield the payloads of the events after them. */
export function resumeTurn(
  at: TurnPlace,
  turnId: string,
  answers: TurnAnswers,
  options: FollowOptions = {},
): AsyncGenerator<TurnPayload> {
  const request = withSignal({ params: { ...at, turn_id: turnId } }, options);
  const body = { ...answers, stream: true };
  return payloads(at, turnId, () => send("POST", `${TURN}/{turn_id}/resume`, body, request), options);
}

/** Yield the payloads of the events of a turn from its beginning, or after one of them. */
export function followTurn(
  at: TurnPlace,
  turnId: string,
  after: string | null = null,
  options: FollowOptions = {},
): AsyncGenerator<TurnPayload> {
  return payloads(at, turnId, () => reopen(at, turnId, after, options), options);
}

async function* payloads(
  at: TurnPlace,
  known: string | null,
  open: () => Promise<Response>,
  options: FollowOptions,
): AsyncGenerator<TurnPayload> {
  let turnId = known;
  const documents = follow<Schemas["StreamChunk"]>({
    open,
    reopen: (after) => (turnId ? reopen(at, turnId, after, options) : null),
    positionOf: (event) => event.id,
    isLast: ({ event }) => ["turn_complete", "turn_awaiting_input"].includes(event.payload.event_type),
    ...options,
  });
  for await (const { event } of documents) {
    if (event.payload.event_type === "turn_start") turnId = event.payload.turn_id;
    yield event.payload;
  }
}

function reopen(at: TurnPlace, turnId: string, after: string | null, options: FollowOptions): Promise<Response> {
  const params = { ...at, turn_id: turnId };
  return send(
    "GET",
    `${TURN}/{turn_id}/events`,
    undefined,
    withSignal({ params, query: { starting_after: after } }, options),
  );
}

function withSignal<T extends object>(
  request: T,
  { signal, headers }: FollowOptions,
): T & Pick<FollowOptions, "signal" | "headers"> {
  return { ...request, ...(signal && { signal }), ...(headers && { headers }) };
}
