import type { JSX } from "preact";
import { Excerpt } from "../../components/excerpt";

/** What a tool says about itself. Its server may say a lot. */
export function Description({ text }: { text: string }): JSX.Element {
  if (!text.trim()) return <p class="hint">It has no description.</p>;
  return <Excerpt text={text} label="the description" length={600} />;
}
