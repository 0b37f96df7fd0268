/** A turn or a response that is sent, followed, continued and stopped. */
import { batch, signal, type Signal } from "@preact/signals";
import { ApiError, toApiError } from "../errors";
import { keepParts, takeKept } from "./kept-parts";
import { Transcript } from "./transcript";

/** What the user sent, as the page shows it. */
export interface Sent {
  text: string;
  /** Names of documents, and images as data URLs. */
  documents: readonly string[];
  images: readonly string[];
}

/** Return a message that is only text. */
export function plain(text: string): Sent {
  return { text, documents: [], images: [] };
}

export interface RunState<D> {
  id: string | null;
  /** `sending`: nothing has come back yet. */
  phase: "sending" | "running" | "ended";
  isReconnecting: boolean;
  isStopping: boolean;
  error: ApiError | null;
  /** The turn or response, once it has ended or waits. */
  document: D | null;
}

/** How to read a kind of run. */
export interface Reader<D, E> {
  /** Show an event, and return what it says about the run. */
  read: (to: Transcript, event: E) => Partial<RunState<D>>;
  /** Read the run as it is stored. */
  load: (id: string) => Promise<D>;
  /** Show a stored run. */
  show: (to: Transcript, document: D) => void;
  isOpen: (document: D) => boolean;
}

export interface StreamOptions {
  signal: AbortSignal;
  onBreak: () => void;
  onPosition: (position: string) => void;
}

const NOTHING = {
  id: null,
  phase: "sending",
  isReconnecting: false,
  isStopping: false,
  error: null,
  document: null,
} as const;

export class Run<D, E> {
  readonly key = newId();
  readonly transcript = new Transcript(() => this.#schedule());
  readonly state: Signal<RunState<D>>;
  /** Messages of the user; more than one if others were added while it ran. */
  readonly sent: Signal<readonly Sent[]>;
  #next: RunState<D>;
  #frame = 0;
  #stop = new AbortController();
  #position: string | null = null;

  constructor(
    readonly reader: Reader<D, E>,
    sent: readonly Sent[],
    known: Partial<RunState<D>> = {},
  ) {
    this.#next = { ...NOTHING, ...known };
    this.state = signal(this.#next);
    this.sent = signal(sent);
    if (known.document) {
      reader.show(this.transcript, known.document);
      this.flush();
    }
  }

  get latest(): RunState<D> {
    return this.#next;
  }

  /** Show the events of a stream until its end. Return false if another one has taken its place. */
  async follow(open: (options: StreamOptions) => AsyncGenerator<E>, onEvent?: (event: E) => boolean): Promise<boolean> {
    this.#stop.abort();
    const own = (this.#stop = new AbortController());
    this.#update({ phase: this.#next.id ? "running" : "sending", error: null });
    const options = {
      signal: own.signal,
      onBreak: () => this.#update({ isReconnecting: true }),
      onPosition: (position: string) => (this.#position = position),
    };
    try {
      for await (const event of open(options)) {
        if (onEvent && !onEvent(event)) return false;
        const changes = this.reader.read(this.transcript, event);
        this.#update({ phase: "running", isReconnecting: false, ...changes });
      }
      this.#update({ phase: "ended" });
    } catch (error) {
      const failure = toApiError(error);
      if (own.signal.aborted || failure.code === "aborted") return false;
      await this.#end(failure);
    }
    this.flush();
    return true;
  }

  /** Show what is stored of a run whose stream has failed, beside the error. */
  async #end(error: ApiError): Promise<void> {
    const changes: Partial<RunState<D>> = { phase: "ended", isReconnecting: false, error };
    const { id } = this.#next;
    const isOver = error.status === 0 && !["unreachable", "stream_broken"].includes(error.code);
    if (id && isOver) {
      const document = await this.reader.load(id).catch(() => null);
      if (document && !this.reader.isOpen(document)) this.reader.show(this.transcript, document);
      if (document) changes.document = document;
    }
    this.#update(changes);
  }

  update(changes: Partial<RunState<D>>): void {
    this.#update(changes);
  }

  /** Wait until the stream that is followed has ended. */
  whenEnded(): Promise<void> {
    return new Promise((resolve) => {
      const stop = this.state.subscribe(({ phase }) => {
        if (phase !== "ended") return;
        resolve();
        queueMicrotask(() => stop());
      });
    });
  }

  /** Show what this tab had of the run before a reload. Return the number of its last event. */
  restore(): string | null {
    const kept = this.#next.id && takeKept(this.#next.id);
    if (!kept) return null;
    for (const [id, data] of kept.parts) this.transcript.put(id, data);
    this.flush();
    this.#position = kept.position;
    return kept.position;
  }

  /** Keep what has arrived of a run that is not over, for a reload. */
  keep(): void {
    const { id, phase } = this.#next;
    if (!id || phase === "ended" || this.#position === null) return;
    const parts = this.transcript.latest.map(({ id: part, latest }) => [part, latest] as const);
    keepParts(id, { position: this.#position, parts });
  }

  /** Stop to listen. The run itself continues. */
  close(): void {
    this.#stop.abort();
    cancelAnimationFrame(this.#frame);
  }

  flush(): void {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    batch(() => {
      this.transcript.flush();
      this.state.value = this.#next;
    });
  }

  #update(changes: Partial<RunState<D>>): void {
    const before = this.#next;
    const isChanged = Object.entries(changes).some(([name, value]) => before[name as keyof RunState<D>] !== value);
    if (!isChanged) return;
    this.#next = { ...before, ...changes };
    this.#schedule();
  }

  #schedule(): void {
    this.#frame ||= requestAnimationFrame(() => this.flush());
  }
}

/** Return a random id. `crypto.randomUUID` exists on secure origins only. */
export function newId(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
