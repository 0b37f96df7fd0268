import { useState } from "preact/hooks";
import { type ApiError, toApiError } from "../errors";

export interface Action {
  isBusy: boolean;
  /** Why the last attempt failed. */
  error: ApiError | null;
  /** Start it, also as the handler of a form. */
  run: (event?: Event) => void;
  forget: () => void;
}

/** What a button or a form does, with its state. It does not run twice at a time. */
export function useAction(act: () => Promise<void>): Action {
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<ApiError | null>(null);
  const run = async () => {
    setBusy(true);
    setError(null);
    try {
      await act();
    } catch (failure) {
      setError(toApiError(failure));
    } finally {
      setBusy(false);
    }
  };
  return {
    isBusy,
    error,
    run: (event) => {
      event?.preventDefault();
      if (!isBusy) void run();
    },
    forget: () => setError(null),
  };
}
