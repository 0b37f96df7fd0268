/** What a tab had of a run that goes on, when it was reloaded. The server has it some seconds later. */
import type { PartData } from "./transcript";

export interface KeptParts {
  /** The number of the last event. */
  position: string;
  parts: readonly (readonly [string, PartData])[];
}

const PREFIX = "stint.run.";

/** More than this is read from the server, in characters. */
const LONGEST = 1_000_000;

export function keepParts(id: string, kept: KeptParts): void {
  try {
    const text = JSON.stringify(kept);
    if (text.length <= LONGEST) sessionStorage.setItem(PREFIX + id, text);
  } catch {
    // The browser keeps nothing more for this site.
  }
}

/** Return what was kept, once. */
export function takeKept(id: string): KeptParts | null {
  try {
    const text = sessionStorage.getItem(PREFIX + id);
    sessionStorage.removeItem(PREFIX + id);
    return text ? (JSON.parse(text) as KeptParts) : null;
  } catch {
    return null;
  }
}
