/** The state of a turn that streams, updated once per frame. */
import { signal, type Signal } from "@preact/signals";
import { ApiError, toApiError } from "./errors";
import { followTurn, startTurn, type Turn, type TurnPayload, type TurnPlace } from "./turns";

export interface LiveTurn {
  turnId: string | null;
  message: string;
  text: string;
  /** The turn as stored, once it has ended. */
  turn: Turn | null;
  isRunning: boolean;
  /** The connection broke, and is tried again. */
  isReconnecting: boolean;
  error: ApiError | null;
}

const NOTHING: LiveTurn = {
  turnId: null,
  message: "",
  text: "",
  turn: null,
  isRunning: false,
  isReconnecting: false,
  error: null,
};

export class TurnRunner {
  readonly state: Signal<LiveTurn> = signal(NOTHING);
  #next = NOTHING;
  #frame = 0;
  #stop = new AbortController();

  /** Send a message, and show its turn. */
  async start(at: TurnPlace, message: string): Promise<void> {
    this.#update({ ...NOTHING, message, isRunning: true });
    const body = { messages: [{ role: "user" as const, content: message, context: null }] };
    await this.#show(startTurn(at, body, this.#options()));
  }

  /** Show a turn that was started before. */
  async rejoin(at: TurnPlace, turnId: string, message: string): Promise<void> {
    this.#update({ ...NOTHING, turnId, message, isRunning: true });
    await this.#show(followTurn(at, turnId, null, this.#options()));
  }

  /** Stop to listen. The turn itself continues. */
  close(): void {
    this.#stop.abort();
    cancelAnimationFrame(this.#frame);
  }

  #options() {
    this.#stop.abort();
    this.#stop = new AbortController();
    return { signal: this.#stop.signal, onBreak: () => this.#update({ isReconnecting: true }) };
  }

  async #show(payloads: AsyncGenerator<TurnPayload>): Promise<void> {
    try {
      for await (const payload of payloads) this.#update({ isReconnecting: false, ...this.#changes(payload) });
      this.#update({ isRunning: false });
    } catch (error) {
      const failure = toApiError(error);
      if (failure.code !== "aborted") this.#update({ isRunning: false, isReconnecting: false, error: failure });
    }
  }

  #changes(payload: TurnPayload): Partial<LiveTurn> {
    switch (payload.event_type) {
      case "turn_start":
        return { turnId: payload.turn_id };
      case "step_progress":
        return payload.delta.type === "text" ? { text: this.#next.text + payload.delta.text } : {};
      case "turn_complete":
      case "turn_awaiting_input":
        return { turn: payload.turn };
      default:
        return {};
    }
  }

  #update(changes: Partial<LiveTurn>): void {
    this.#next = { ...this.#next, ...changes };
    this.#frame ||= requestAnimationFrame(() => {
      this.#frame = 0;
      this.state.value = this.#next;
    });
  }
}
