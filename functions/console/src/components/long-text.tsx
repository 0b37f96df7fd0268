import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { formatCount } from "../format";
import { Button } from "./button";

const SHOWN = 10_000;
const MORE = 200_000;

interface LongTextProps {
  text: string;
  /** What the text is, for users of screen readers. */
  label: string;
  /** The end of the text is shown, because it grows. */
  isGrowing?: boolean;
}

/** A text as it is, of which only the beginning (or the end) is on the page. */
export function LongText({ text, label, isGrowing = false }: LongTextProps): JSX.Element {
  const [count, setCount] = useState(SHOWN);
  const isCut = text.length > count;
  const shown = !isCut ? text : isGrowing ? text.slice(-count) : text.slice(0, count);
  return (
    <div class="long-text">
      <pre tabIndex={0} role="group" aria-label={label}>
        {shown}
      </pre>
      {isCut && (
        <Button kind="quiet" onClick={() => setCount(count + MORE)}>
          Show more of {formatCount(text.length)} characters
        </Button>
      )}
    </div>
  );
}
