import { useRef } from "preact/hooks";

let count = 0;

/** Return an id that is unique in the page, and stays that of its component. */
export function useId(prefix: string): string {
  const ref = useRef("");
  if (!ref.current) ref.current = `${prefix}-${(count += 1)}`;
  return ref.current;
}
