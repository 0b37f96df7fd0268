/** Responses that follow each other on a page. */
import { signal, type Signal } from "@preact/signals";
import { post } from "../api";
import { type ApiError, toApiError } from "../errors";
import { followResponse, type ResponseEvent, startResponse } from "../responses";
import { loadRun, newRun, type ResponseBody, type ResponseRun, runOfResponse } from "./response-run";
import type { Sent } from "./run";

export interface UnsentResponse {
  body: ResponseBody;
  key: string;
  error: ApiError;
}

export class ResponseChain {
  readonly runs: Signal<readonly ResponseRun[]> = signal([]);
  readonly #bodies = new Map<string, ResponseBody>();

  /** Send a request. Return it, with the reason, if it did not arrive. */
  async send(
    body: ResponseBody,
    sent: readonly Sent[],
    key: string,
    onArrival: (id: string) => void,
  ): Promise<UnsentResponse | null> {
    const run = newRun(sent);
    this.#bodies.set(run.key, body);
    this.runs.value = [...this.runs.peek(), run];
    const headers = { "idempotency-key": key };
    await run.follow(
      (own) => startResponse(body, { ...own, headers }),
      (event) => {
        if (event.type !== "response.created" && event.type !== "response.queued") return true;
        onArrival(event.response.id);
        return !this.#joinMerged(run, event);
      },
    );
    const { error, id } = run.latest;
    if (!error || id) return null;
    this.#remove(run);
    return { body, key, error };
  }

  /** Add a message to the run that has taken it. Return whether there is one. */
  #joinMerged(
    run: ResponseRun,
    event: Extract<ResponseEvent, { type?: "response.created" | "response.queued" }>,
  ): boolean {
    const other = this.runs.peek().find((each) => each !== run && each.latest.id === event.response.id);
    if (!other) return false;
    other.sent.value = [...other.sent.peek(), ...run.sent.peek()];
    this.#remove(run);
    return true;
  }

  /** Show a stored response before those on the page. Raises ApiError. */
  async loadBefore(id: string): Promise<void> {
    const run = await loadRun(id);
    this.runs.value = [run, ...this.runs.peek()];
  }

  rejoin(run: ResponseRun): void {
    const id = run.latest.id!;
    const again = newRun(run.sent.peek());
    again.update({ id, phase: "running" });
    this.#replace(run, again);
    void again.follow((options) => followResponse(id, null, options));
  }

  async cancel(run: ResponseRun): Promise<ApiError | null> {
    const { id } = run.latest;
    if (!id) return null;
    run.update({ isStopping: true });
    try {
      const response = await post("/v1/responses/{response_id}/cancel", {}, { params: { response_id: id } });
      if (run.latest.phase === "ended" && !run.latest.document)
        this.#replace(run, runOfResponse(response, run.sent.peek()));
      return null;
    } catch (error) {
      return toApiError(error);
    } finally {
      run.update({ isStopping: false });
    }
  }

  requestOf(run: ResponseRun): ResponseBody | null {
    return this.#bodies.get(run.key) ?? null;
  }

  keep(): void {
    for (const run of this.runs.peek()) run.keep();
  }

  close(): void {
    for (const run of this.runs.peek()) run.close();
  }

  #replace(run: ResponseRun, by: ResponseRun): void {
    const body = this.#bodies.get(run.key);
    if (body) this.#bodies.set(by.key, body);
    run.close();
    this.runs.value = this.runs.peek().map((each) => (each === run ? by : each));
  }

  #remove(run: ResponseRun): void {
    this.runs.value = this.runs.peek().filter((each) => each !== run);
  }
}
