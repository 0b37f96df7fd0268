/** Server-sent events over fetch, with the key in a header, which EventSource cannot send. */
import { ApiError, errorIn, toApiError } from "./errors";

export interface ServerEvent {
  /** The number of the event in its stream; "" if it has none. */
  id: string;
  name: string;
  data: string;
}

/** Yield the events of a response. Raises ApiError if the connection breaks. */
export async function* readEvents(response: Response): AsyncGenerator<ServerEvent> {
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  const parser = new EventParser();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield* parser.feed(value);
    }
  } catch (error) {
    throw toApiError(error);
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

/** Parser of text in pieces. Lines end with LF, CR or CRLF. */
class EventParser {
  #parts: string[] = [];
  #isAfterCr = false;
  #id = "";
  #name = "";
  #data: string[] = [];

  *feed(text: string): Generator<ServerEvent> {
    let start = this.#isAfterCr && text.startsWith("\n") ? 1 : 0;
    this.#isAfterCr = false;
    const ends = /\r\n|\r|\n/g;
    ends.lastIndex = start;
    for (let end = ends.exec(text); end; end = ends.exec(text)) {
      this.#parts.push(text.slice(start, end.index));
      start = ends.lastIndex;
      this.#isAfterCr = end[0] === "\r" && start === text.length;
      const event = this.#takeLine();
      if (event) yield event;
    }
    if (start < text.length) this.#parts.push(text.slice(start));
  }

  #takeLine(): ServerEvent | null {
    const line = this.#parts.join("");
    this.#parts = [];
    if (line === "") return this.#takeEvent();
    const [, field, value] = /^([^:]*):? ?([^]*)$/.exec(line)!;
    if (field === "id") this.#id = value!;
    else if (field === "event") this.#name = value!;
    else if (field === "data") this.#data.push(value!);
    return null;
  }

  #takeEvent(): ServerEvent | null {
    const event = { id: this.#id, name: this.#name, data: this.#data.join("\n") };
    const isEmpty = this.#data.length === 0;
    this.#name = "";
    this.#data = [];
    return isEmpty ? null : event;
  }
}

export interface Following<T> {
  /** Open the stream. */
  open: () => Promise<Response>;
  /** Open the stream again after an event; null if that is not possible yet. */
  reopen: (after: string) => Promise<Response> | null;
  /** Return the number of an event, which `reopen` gets. */
  positionOf: (event: ServerEvent, document: T) => string;
  isLast: (document: T) => boolean;
  /** The connection broke, and is tried again. */
  onBreak?: () => void;
  /** An event with this number follows. */
  onPosition?: (position: string) => void;
  signal?: AbortSignal;
}

const PAUSES = [250, 500, 1000, 2000, 4000, 8000];

/** Yield the documents of a stream until its last one. A stream that breaks is opened again where it broke. */
export async function* follow<T>(following: Following<T>): AsyncGenerator<T> {
  let position: string | null = null;
  let failures = 0;
  for (;;) {
    try {
      const reopened: Promise<Response> | null = position === null ? null : following.reopen(position);
      const response: Response = await (reopened ?? following.open());
      for await (const event of readEvents(response)) {
        if (event.data === "[DONE]") continue;
        const document = JSON.parse(event.data) as T;
        const failure = errorIn(document);
        if (failure) throw new StreamFailure(failure);
        position = following.positionOf(event, document) || position;
        failures = 0;
        if (position) following.onPosition?.(position);
        yield document;
        if (following.isLast(document)) return;
      }
      throw new ApiError(0, "stream_broken", "The stream ended early.");
    } catch (error) {
      if (error instanceof StreamFailure) throw error.error;
      const failure = toApiError(error);
      const isBreak = failure.status === 0 && ["unreachable", "stream_broken"].includes(failure.code);
      const pause = PAUSES[failures];
      if (!isBreak || position === null || pause === undefined || following.signal?.aborted) throw failure;
      failures += 1;
      following.onBreak?.();
      await wait(pause, following.signal);
    }
  }
}

/** An error that the server has sent as the last event. */
class StreamFailure extends Error {
  constructor(readonly error: ApiError) {
    super(error.message);
  }
}

export function wait(milliseconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, milliseconds);
    const stop = () => {
      clearTimeout(timer);
      reject(new ApiError(0, "aborted", "Stopped."));
    };
    if (signal?.aborted) stop();
    else signal?.addEventListener("abort", stop, { once: true });
  });
}
