/** What was typed and not sent, kept in this tab. */
import { useEffect, useRef, useState } from "preact/hooks";

/** Longer texts are kept until the page is left, in characters. */
const LONGEST = 500_000;

export interface Draft {
  text: string;
  set: (text: string) => void;
  /** Show nothing, but keep the text until it is forgotten or another one is begun. */
  hide: () => void;
  /** Forget the text that is hidden, because it has arrived. */
  forget: () => void;
}

/** Keep a text of this tab under a name. */
export function useDraft(name: string, initial = ""): Draft {
  const key = `stint.draft.${name}`;
  const [text, setText] = useState(() => read(key) ?? initial);
  const state = useRef({ kept: text, isHidden: false, timer: 0 });
  const { current } = state;
  const write = () => {
    clearTimeout(current.timer);
    keep(key, current.kept === initial ? "" : current.kept);
  };
  useEffect(() => {
    window.addEventListener("pagehide", write);
    return () => {
      write();
      window.removeEventListener("pagehide", write);
    };
  }, [key]);
  const set = (next: string) => {
    current.kept = next;
    current.isHidden = false;
    setText(next);
    clearTimeout(current.timer);
    current.timer = window.setTimeout(write, 300);
  };
  const hide = () => {
    write();
    current.isHidden = true;
    setText(initial);
  };
  const forget = () => {
    if (current.isHidden) set(initial);
  };
  return { text, set, hide, forget };
}

function read(key: string): string | null {
  try {
    return sessionStorage.getItem(key);
  } catch {
    return null;
  }
}

function keep(key: string, text: string): void {
  try {
    if (text && text.length <= LONGEST) sessionStorage.setItem(key, text);
    else sessionStorage.removeItem(key);
  } catch {
    // The browser keeps nothing more for this site.
  }
}
