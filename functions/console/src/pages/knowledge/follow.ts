/** Read again what is in progress, until it ends. */
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, toApiError } from "../../errors";
import { wait } from "../../stream";

const FIRST = 700;
const LONGEST = 8000;
/** What is asked about at a time, each by a request. */
const MOST_FOLLOWED = 10;

/** Call `read` with growing pauses as long as there are ids. Return the error of the last attempt. */
export function useFollow(
  ids: readonly string[],
  read: (ids: readonly string[], signal: AbortSignal) => Promise<void>,
): ApiError | null {
  const [error, setError] = useState<ApiError | null>(null);
  const current = useRef(read);
  current.current = read;
  const followed = ids.slice(0, MOST_FOLLOWED);
  const wanted = followed.join(" ");
  useEffect(() => {
    if (!wanted) return;
    const stop = new AbortController();
    const loop = async () => {
      for (let pause = FIRST; ; pause = Math.min(pause * 1.4, LONGEST)) {
        await wait(pause, stop.signal);
        // A page in the background asks nothing.
        if (document.hidden) continue;
        try {
          await current.current(wanted.split(" "), stop.signal);
          setError(null);
        } catch (failure) {
          const problem = toApiError(failure);
          if (problem.code === "aborted") return;
          setError(problem);
          await wait((problem.retryAfter ?? 0) * 1000, stop.signal);
        }
      }
    };
    loop().catch(() => undefined);
    return () => stop.abort();
  }, [wanted]);
  return wanted ? error : null;
}
