/** The words of a query in a text. Words are those that the index compares (retrieval/words.py). */
import type { JSX } from "preact";
import { useMemo } from "preact/hooks";

// Scripts without spaces have a word per character.
const WORD = /[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]|[\p{L}\p{N}\p{M}]+/gu;

/** Longer words are not compared, and marks beyond a number are not drawn. */
const LONGEST_WORD = 100;
const MOST_MARKS = 300;

export function wordsOf(query: string): ReadonlySet<string> {
  return new Set([...query.matchAll(WORD)].map(([word]) => fold(word)));
}

function fold(word: string): string {
  return word.slice(0, LONGEST_WORD).normalize("NFKC").toLowerCase();
}

/** Return where a text has one of the words first; 0 if nowhere. */
export function firstMatch(text: string, words: ReadonlySet<string>): number {
  for (const found of text.matchAll(WORD)) if (words.has(fold(found[0]))) return found.index;
  return 0;
}

export function Highlighted({ text, words }: { text: string; words: ReadonlySet<string> }): JSX.Element {
  const parts = useMemo(() => divide(text, words), [text, words]);
  return <>{parts.map((part, index) => (index % 2 ? <mark key={index}>{part}</mark> : part))}</>;
}

/** Return a text in parts, of which every second one is a word that matches. */
function divide(text: string, words: ReadonlySet<string>): string[] {
  const parts: string[] = [];
  let read = 0;
  for (const found of text.matchAll(WORD)) {
    if (!words.has(fold(found[0]))) continue;
    parts.push(text.slice(read, found.index), found[0]);
    read = found.index + found[0].length;
    if (parts.length >= 2 * MOST_MARKS) break;
  }
  return [...parts, text.slice(read)];
}
