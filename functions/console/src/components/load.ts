/** Content that is loaded as a whole, and stays while it is loaded again. */
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { type ApiError, toApiError } from "../errors";

export interface Loaded<T> {
  data: T | null;
  error: ApiError | null;
  isLoading: boolean;
  reload: () => void;
}

/** Load once and on demand. `load` must be stable, as of useCallback; another one loads again. */
export function useLoad<T>(load: (signal: AbortSignal) => Promise<T>): Loaded<T> {
  const [state, setState] = useState<Omit<Loaded<T>, "reload">>({ data: null, error: null, isLoading: true });
  const current = useRef(new AbortController());
  const reload = useCallback(() => {
    current.current.abort();
    const own = (current.current = new AbortController());
    setState((old) => ({ ...old, isLoading: true }));
    load(own.signal).then(
      (data) => {
        if (!own.signal.aborted) setState({ data, error: null, isLoading: false });
      },
      (error: unknown) => {
        if (!own.signal.aborted) setState((old) => ({ ...old, error: toApiError(error), isLoading: false }));
      },
    );
  }, [load]);
  useEffect(() => {
    reload();
    return () => current.current.abort();
  }, [reload]);
  return { ...state, reload };
}
