/** Turns as runs. */
import { get, type Schemas } from "../api";
import { ApiError } from "../errors";
import { followTurn, type Turn, type TurnPayload, type TurnPlace } from "../turns";
import { type Attachment, isImage } from "./attachments";
import type { Message } from "./composer";
import { readContent } from "./content";
import { type Reader, Run, type Sent } from "./run";
import { addTurn, addTurnEvent } from "./turn-parts";

export type TurnRun = Run<Turn, TurnPayload>;
export type TurnBody = Partial<Schemas["TurnCreateRequest"]>;

export function turnReader(at: TurnPlace): Reader<Turn, TurnPayload> {
  return {
    read: (to, payload) => {
      addTurnEvent(to, payload);
      if (payload.event_type === "turn_start") return { id: payload.turn_id, document: null };
      const isLast = payload.event_type === "turn_complete" || payload.event_type === "turn_awaiting_input";
      return { document: isLast ? payload.turn : null };
    },
    load: (turn_id) => get("/v1/agents/{agent_id}/session/{session_id}/turn/{turn_id}", { params: { ...at, turn_id } }),
    show: addTurn,
    isOpen: ({ status }) => status === "in_progress",
  };
}

/** Return a stored turn as a run, which follows the turn if it still runs. */
export function runOfTurn(at: TurnPlace, turn: Turn, sent: readonly Sent[] = sentOf(turn)): TurnRun {
  const isOpen = turn.status === "in_progress";
  const known = isOpen ? { phase: "running" as const } : { phase: "ended" as const, document: turn };
  const run: TurnRun = new Run(turnReader(at), sent, { id: turn.turn_id, ...known });
  if (isOpen) {
    const after = run.restore();
    void run.follow((options) => followTurn(at, turn.turn_id, after, options));
  }
  return run;
}

function sentOf(turn: Turn): Sent[] {
  return turn.input_messages.flatMap((message) => {
    if (message.role === "tool") return [];
    const { text, images, links } = readContent(message.content);
    return [{ text, documents: links, images }];
  });
}

/** Return the request for a message. */
export function bodyOf({ text, attachments }: Message): TurnBody {
  const images = attachments.filter(isImage);
  const documents = attachments.filter((each) => !isImage(each));
  const content =
    images.length === 0
      ? text
      : [
          ...(text ? [{ type: "text" as const, text }] : []),
          ...images.map(({ url }) => ({ type: "image" as const, image: { url: { uri: url } } })),
        ];
  return {
    messages: [{ role: "user", content, context: null } as Schemas["UserMessage"]],
    ...(documents.length > 0 && {
      documents: documents.map(({ url, type }) => ({ content: { uri: url }, mime_type: type })),
    }),
  };
}

export function sentFrom({ text, attachments }: Message): Sent {
  const names = (kept: readonly Attachment[]) => kept.map(({ name }) => name);
  return {
    text,
    documents: names(attachments.filter((each) => !isImage(each))),
    images: attachments.filter(isImage).map(({ url }) => url),
  };
}

export function failureOfTurn({ status, error }: Turn): ApiError | null {
  if (error) return new ApiError(0, error.code, error.message);
  return status === "failed" ? new ApiError(0, "failed", "The turn failed.") : null;
}
