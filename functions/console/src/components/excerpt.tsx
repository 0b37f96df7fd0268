import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { formatCount } from "../format";
import { Button } from "./button";
import { LongText } from "./long-text";

interface ExcerptProps {
  text: string;
  label: string;
  /** Characters that are shown before the reader wants more. */
  length: number;
}

/** The beginning of a text, and the rest on request. */
export function Excerpt({ text, label, length }: ExcerptProps): JSX.Element {
  const [isWhole, setWhole] = useState(false);
  const button = `Show all ${formatCount(text.length)} characters`;
  if (isWhole) return <LongText text={text} label={label} />;
  return (
    <div>
      <p class="prose">
        {text.slice(0, length)}
        {text.length > length && " …"}
      </p>
      {text.length > length && (
        <Button kind="quiet" aria-label={`${button} of ${label}`} onClick={() => setWhole(true)}>
          {button}
        </Button>
      )}
    </div>
  );
}
