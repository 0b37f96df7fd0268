/** A response and its steps, read again while it runs. */
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { get, type Schemas } from "../api";
import { type ApiError, toApiError } from "../errors";
import { wait } from "../stream";
import type { ResponseStep } from "./steps";

const PAUSE = 1500;

export interface LiveResponse {
  response: Schemas["Response"] | null;
  steps: readonly ResponseStep[];
  error: ApiError | null;
}

const NOTHING: LiveResponse = { response: null, steps: [], error: null };

export function isRunning({ status }: Schemas["Response"]): boolean {
  return status === "queued" || status === "in_progress";
}

export function useLiveResponse(id: string): LiveResponse & { reload: () => void } {
  const [state, setState] = useState(NOTHING);
  const stop = useRef(new AbortController());
  const reload = useCallback(() => {
    stop.current.abort();
    const { signal } = (stop.current = new AbortController());
    const params = { response_id: id };
    const run = async () => {
      for (;;) {
        const [response, steps] = await Promise.all([
          get("/v1/responses/{response_id}", { params, signal }),
          get("/v1/responses/{response_id}/steps", { params, signal }),
        ]);
        if (signal.aborted) return;
        setState({ response, steps: steps.data, error: null });
        if (!isRunning(response)) return;
        await wait(PAUSE, signal);
      }
    };
    run().catch((failure: unknown) => {
      if (!signal.aborted) setState((old) => ({ ...old, error: toApiError(failure) }));
    });
  }, [id]);
  useEffect(() => {
    reload();
    return () => stop.current.abort();
  }, [reload]);
  return { ...state, reload };
}
