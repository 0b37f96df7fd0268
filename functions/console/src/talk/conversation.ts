/** The turns of a session, those that run here included. */
import { signal, type Signal } from "@preact/signals";
import { get, post } from "../api";
import { type ApiError, toApiError } from "../errors";
import { wait } from "../stream";
import {
  followTurn,
  resumeTurn,
  startTurn,
  type Turn,
  type TurnAnswers,
  type TurnPayload,
  type TurnPlace,
} from "../turns";
import type { Message } from "./composer";
import { newId, Run } from "./run";
import { runOfTurn, sentFrom, type TurnBody, type TurnRun, turnReader } from "./turn-run";

const TURN = "/v1/agents/{agent_id}/session/{session_id}/turn/{turn_id}";

/** A message in line starts soon after the turn before it has ended, in milliseconds. */
const PAUSES = [1000, 3000, 10_000];

export interface Sending {
  message: Message;
  body: TurnBody;
  /** The same key makes a repetition find what has arrived. */
  key: string;
}

export interface Unsent extends Sending {
  error: ApiError;
}

export interface TurnPage {
  turns: readonly Turn[];
  hasEarlier: boolean;
}

/** Load the newest turns of a session, or those before one. Raises ApiError. */
export async function loadTurns(at: TurnPlace, before: string | null = null): Promise<TurnPage> {
  const path = "/v1/agents/{agent_id}/session/{session_id}/turns";
  const { data, has_more } = await get(path, { params: { ...at }, query: { order: "desc", limit: 20, after: before } });
  return { turns: [...data].reverse(), hasEarlier: has_more };
}

export class Conversation {
  readonly runs: Signal<readonly TurnRun[]>;
  readonly hasEarlier: Signal<boolean>;
  readonly #closed = new AbortController();
  readonly #bodies = new Map<string, TurnBody>();

  constructor(
    readonly at: TurnPlace,
    { turns, hasEarlier }: TurnPage,
  ) {
    this.hasEarlier = signal(hasEarlier);
    this.runs = signal(turns.map((turn) => runOfTurn(at, turn)));
    if (turns.at(-1)?.status === "in_progress") this.#findLater().catch(() => undefined);
  }

  /** Show the turns of messages that wait in line, which were sent before a reload: when they start, they are listed. */
  async #findLater(): Promise<void> {
    for (const pause of PAUSES) {
      await this.runs.peek().at(-1)?.whenEnded();
      await wait(pause, this.#closed.signal);
      const newest = await loadTurns(this.at).catch(() => null);
      const known = new Set(this.runs.peek().map(({ latest }) => latest.id));
      const isSending = this.runs.peek().some(({ latest }) => latest.phase === "sending");
      const later = isSending ? [] : (newest?.turns ?? []).filter(({ turn_id }) => !known.has(turn_id));
      this.#set([...this.runs.peek(), ...later.map((turn) => runOfTurn(this.at, turn))]);
    }
  }

  /** Send a message. Return it, with the reason, if it did not arrive. */
  async send(sending: Sending, onArrival: () => void): Promise<Unsent | null> {
    const { message, body, key } = sending;
    const waiting = this.runs.peek().filter(({ latest }) => latest.document?.status === "awaiting_input");
    const run: TurnRun = new Run(turnReader(this.at), [sentFrom(message)]);
    this.#bodies.set(run.key, body);
    this.#set([...this.runs.peek(), run]);
    const options = { headers: { "idempotency-key": key } };
    await run.follow(
      (own) => startTurn(this.at, body, { ...own, ...options }),
      (payload) => {
        onArrival();
        return !this.#joinMerged(run, payload);
      },
    );
    const { error, id } = run.latest;
    for (const each of waiting) await this.#reload(each);
    if (!error || id) return null;
    this.#set(this.runs.peek().filter((each) => each !== run));
    return { ...sending, error };
  }

  /** Add a message to the run that has taken it. Return whether there is one. */
  #joinMerged(run: TurnRun, payload: TurnPayload): boolean {
    if (payload.event_type !== "turn_start") return false;
    const other = this.runs.peek().find((each) => each !== run && each.latest.id === payload.turn_id);
    if (!other) return false;
    other.sent.value = [...other.sent.peek(), ...run.sent.peek()];
    this.#set(this.runs.peek().filter((each) => each !== run));
    return true;
  }

  async resume(run: TurnRun, answers: TurnAnswers): Promise<void> {
    const id = run.latest.id!;
    const options = { headers: { "idempotency-key": newId() } };
    await run.follow((own) => resumeTurn(this.at, id, answers, { ...own, ...options }));
  }

  /** Follow a turn again whose stream was lost. */
  rejoin(run: TurnRun): void {
    const id = run.latest.id!;
    const again: TurnRun = new Run(run.reader, run.sent.peek(), { id, phase: "running" });
    this.#replace(run, again);
    void again.follow((options) => followTurn(this.at, id, null, options));
  }

  async cancel(run: TurnRun): Promise<ApiError | null> {
    const { id } = run.latest;
    if (!id) return null;
    run.update({ isStopping: true });
    try {
      const turn = await post(`${TURN}/cancel`, {}, { params: { ...this.at, turn_id: id } });
      // The stream of a turn that waits for its client has ended before.
      if (run.latest.document?.status === "awaiting_input")
        this.#replace(run, runOfTurn(this.at, turn, run.sent.peek()));
      return null;
    } catch (error) {
      return toApiError(error);
    } finally {
      run.update({ isStopping: false });
    }
  }

  /** Return whether a turn was sent from this page, so that its documents are known. */
  isKnown(run: TurnRun): boolean {
    return this.#bodies.has(run.key);
  }

  /** Return the request that started a turn, with its documents if they were sent from here. */
  requestOf(run: TurnRun): TurnBody | null {
    const known = this.#bodies.get(run.key);
    if (known) return known;
    const messages = run.latest.document?.input_messages.filter((message) => message.role !== "tool") ?? [];
    return messages.length > 0 ? { messages } : null;
  }

  /** Load the turns before those on the page. Return what went wrong. */
  async loadEarlier(): Promise<ApiError | null> {
    try {
      const { turns, hasEarlier } = await loadTurns(this.at, this.runs.peek()[0]?.latest.id ?? null);
      this.#set([...turns.map((turn) => runOfTurn(this.at, turn)), ...this.runs.peek()]);
      this.hasEarlier.value = hasEarlier;
      return null;
    } catch (error) {
      return toApiError(error);
    }
  }

  keep(): void {
    for (const run of this.runs.peek()) run.keep();
  }

  close(): void {
    this.#closed.abort();
    for (const run of this.runs.peek()) run.close();
  }

  async #reload(run: TurnRun): Promise<void> {
    const { id } = run.latest;
    const turn = await get(TURN, { params: { ...this.at, turn_id: id! } }).catch(() => null);
    if (turn) this.#replace(run, runOfTurn(this.at, turn, run.sent.peek()));
  }

  #replace(run: TurnRun, by: TurnRun): void {
    const body = this.#bodies.get(run.key);
    if (body) this.#bodies.set(by.key, body);
    run.close();
    this.#set(this.runs.peek().map((each) => (each === run ? by : each)));
  }

  #set(runs: readonly TurnRun[]): void {
    this.runs.value = runs;
  }
}
