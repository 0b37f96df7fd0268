/** What a turn or a response has done so far, in order. Its owner shows all changes of a frame at once. */
import { signal, type Signal } from "@preact/signals";
import type { Schemas } from "../api";

export type Content = Schemas["ToolResponse"]["content"];

export interface Citation {
  title: string;
  /** The address of a page; a file has none. */
  url: string | null;
  /** The number of characters before it, or null. */
  index: number | null;
}

export interface TextPart {
  kind: "text" | "reasoning" | "refusal";
  text: string;
  citations: readonly Citation[];
  isDone: boolean;
}

export type CallStatus = "running" | "completed" | "failed" | "waiting" | "incomplete";

export interface CallPart {
  kind: "call";
  /** The kind of tool in words. */
  label: string;
  name: string;
  callId: string;
  /** JSON, or what a model has written in its place. */
  input: string;
  status: CallStatus;
  output: Content | null;
  images: readonly string[];
  error: string;
}

export interface ShieldPart {
  kind: "shield";
  isDone: boolean;
  /** What the shield found; "" if nothing. */
  violation: string;
  level: string;
  metadata: Readonly<Record<string, unknown>>;
}

export interface RetrievalPart {
  kind: "retrieval";
  isDone: boolean;
  stores: string;
  content: Content | null;
}

export interface ApprovalPart {
  kind: "approval";
  requestId: string;
  server: string;
  name: string;
  input: string;
}

export interface NotePart {
  kind: "note";
  title: string;
  lines: readonly string[];
  isFailed: boolean;
}

export type PartData = TextPart | CallPart | ShieldPart | RetrievalPart | ApprovalPart | NotePart;

export interface Part {
  readonly id: string;
  /** What is on the page. */
  readonly shown: Signal<PartData>;
  /** What arrived since the last frame, too. */
  latest: PartData;
}

export class Transcript {
  readonly parts: Signal<readonly Part[]> = signal([]);
  readonly #byId = new Map<string, Part>();
  #all: Part[] = [];
  #changed = new Set<Part>();
  #isLonger = false;

  /** `onChange` is called for every change; then `flush` shows it. */
  constructor(readonly onChange: () => void) {}

  get(id: string): PartData | undefined {
    return this.#byId.get(id)?.latest;
  }

  get latest(): readonly Part[] {
    return this.#all;
  }

  /** Show a part, in the place of one with its id. */
  put(id: string, data: PartData): void {
    const part = this.#byId.get(id);
    if (!part) {
      const added = { id, shown: signal(data), latest: data };
      this.#byId.set(id, added);
      this.#all.push(added);
      this.#isLonger = true;
    } else {
      part.latest = data;
      this.#changed.add(part);
    }
    this.onChange();
  }

  change<K extends PartData["kind"]>(id: string, kind: K, changes: Partial<Extract<PartData, { kind: K }>>): void {
    const before = this.get(id);
    if (before?.kind === kind) this.put(id, { ...before, ...changes } as PartData);
  }

  /** Add text to a part, which begins with it if it is new. */
  append(id: string, kind: TextPart["kind"], text: string): void {
    const before = this.get(id);
    if (before && "text" in before) this.put(id, { ...before, text: before.text + text });
    else this.put(id, { kind, text, citations: [], isDone: false });
  }

  flush(): void {
    for (const part of this.#changed) part.shown.value = part.latest;
    this.#changed.clear();
    if (this.#isLonger) this.parts.value = [...this.#all];
    this.#isLonger = false;
  }
}
