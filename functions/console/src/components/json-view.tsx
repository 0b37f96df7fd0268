import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { formatCount } from "../format";
import { Button } from "./button";
import { CopyButton } from "./copy";

const SHOWN = 20_000;

/** A value as indented JSON, which can be copied. */
export function JsonView({ value, label }: { value: unknown; label: string }): JSX.Element {
  const text = useMemo(() => JSON.stringify(value, null, 2) ?? "undefined", [value]);
  const [isWhole, setWhole] = useState(false);
  const cut = !isWhole && text.length > SHOWN;
  return (
    <figure class="json" aria-label={label}>
      <figcaption>
        <span>{label}</span>
        <CopyButton text={text} what={label} />
      </figcaption>
      <pre tabIndex={0}>{cut ? text.slice(0, SHOWN) : text}</pre>
      {cut && (
        <Button kind="quiet" onClick={() => setWhole(true)}>
          Show all {formatCount(text.length)} characters
        </Button>
      )}
    </figure>
  );
}
