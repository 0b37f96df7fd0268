/** What is shown in the place of content: nothing yet, loading, failed. */
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { type ApiError } from "../errors";
import { signIns } from "../session";
import { Button } from "./button";

export function EmptyState({ title, children }: { title: string; children?: ComponentChildren }): JSX.Element {
  return (
    <div class="state">
      <p class="state-title">{title}</p>
      {children && <div class="state-text">{children}</div>}
    </div>
  );
}

interface ErrorStateProps {
  error: ApiError;
  onRetry?: () => void;
  /** A retry changes something, so that only a press of the button causes it. */
  isChange?: boolean;
}

/** The words of an error, and a way on. That a key was refused is said until somebody has signed in again. */
export function ErrorState({ error, onRetry, isChange = false }: ErrorStateProps): JSX.Element | null {
  const left = useCountdown(error);
  const signInsBefore = useMemo(() => signIns.peek(), [error]);
  const isOver = error.status === 401 && signIns.value > signInsBefore;
  useEffect(() => {
    if (isOver && !isChange) onRetry?.();
  }, [isOver]);
  if (isOver) return null;
  return (
    <div class="state state-error" role="alert">
      <p class="state-title">{titleOf(error)}</p>
      <p class="state-text">{error.message}</p>
      {error.requestId && error.status >= 500 && (
        <p class="hint">
          Request <code>{error.requestId}</code>
        </p>
      )}
      {onRetry && (
        <Button onClick={onRetry} disabled={left > 0}>
          {left > 0 ? `Try again in ${left} s` : "Try again"}
        </Button>
      )}
    </div>
  );
}

/** Return the seconds until a retry may succeed. */
function useCountdown(error: ApiError): number {
  const [left, setLeft] = useState(Math.ceil(error.retryAfter ?? 0));
  useEffect(() => {
    setLeft(Math.ceil(error.retryAfter ?? 0));
    const timer = setInterval(() => setLeft((seconds) => Math.max(0, seconds - 1)), 1000);
    return () => clearInterval(timer);
  }, [error]);
  return left;
}

function titleOf({ status, code }: ApiError): string {
  if (code === "unreachable" || code === "stream_broken") return "No connection";
  if (status === 401) return "You are not signed in";
  if (status === 403) return "You are not allowed to do this";
  if (status === 404) return "Not found";
  if (status === 409) return "Not possible now";
  if (status === 429) return "Too many requests";
  if (status >= 500) return "The server failed";
  return "That did not work";
}

/** Grey lines in the place of text that is being loaded. */
export function Skeleton({ lines = 3 }: { lines?: number }): JSX.Element {
  return (
    <div class="skeleton" role="status">
      <span class="visually-hidden">Loading …</span>
      {Array.from({ length: lines }, (_, index) => (
        <span key={index} aria-hidden="true" />
      ))}
    </div>
  );
}
