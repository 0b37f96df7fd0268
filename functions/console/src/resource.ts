/** What a page reads once, and can read again. */
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { type ApiError, toApiError } from "./errors";

export interface Resource<T> {
  value: T | null;
  error: ApiError | null;
  isLoading: boolean;
  reload: () => void;
  /** Show another value, such as the answer of a change. */
  set: (value: T) => void;
}

/**
 * Read something. `load` must be stable, as of useCallback; another one reads again. While it is read again, the last
 * value stays.
 */
export function useResource<T>(load: (signal: AbortSignal) => Promise<T>): Resource<T> {
  const [state, setState] = useState<{ value: T | null; error: ApiError | null; isLoading: boolean }>(NOTHING);
  const current = useRef(new AbortController());
  const reload = useCallback(() => {
    current.current.abort();
    const { signal } = (current.current = new AbortController());
    // Beside a value, an error stays until there is an answer, so that nothing moves.
    setState((old) => ({ ...old, error: old.value === null ? null : old.error, isLoading: true }));
    load(signal).then(
      (value) => {
        if (!signal.aborted) setState({ value, error: null, isLoading: false });
      },
      (error: unknown) => {
        if (!signal.aborted) setState((old) => ({ ...old, error: toApiError(error), isLoading: false }));
      },
    );
  }, [load]);
  useEffect(() => {
    reload();
    return () => current.current.abort();
  }, [reload]);
  const set = useCallback((value: T) => setState({ value, error: null, isLoading: false }), []);
  return { ...state, reload, set };
}

const NOTHING = { value: null, error: null, isLoading: true };
