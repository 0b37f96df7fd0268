import type { ComponentChildren, JSX } from "preact";
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

/** JSON that is made when it is opened. */
export function Json({
  value,
  label,
  children,
}: {
  value: unknown;
  label: string;
  children?: ComponentChildren;
}): JSX.Element {
  const [isOpen, setOpen] = useState(false);
  return (
    <details class="part" open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <span class="part-label">JSON and code</span>
        <span class="part-line">{label}</span>
      </summary>
      {isOpen && (
        <div class="part-body">
          {children}
          <JsonView value={value} label={label} />
        </div>
      )}
    </details>
  );
}
