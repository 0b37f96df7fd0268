import type { ComponentChildren, JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import { Button } from "./button";

interface DropAreaProps {
  /** What is chosen, for users of screen readers. */
  label: string;
  /** The words of the button. */
  action: string;
  isMultiple?: boolean;
  onFiles: (files: Iterable<File>) => void;
  children: ComponentChildren;
}

/** A place to drop files on, and a button that chooses them. */
export function DropArea({ label, action, isMultiple = false, onFiles, children }: DropAreaProps): JSX.Element {
  const [isOver, setOver] = useState(false);
  const input = useRef<HTMLInputElement>(null);
  return (
    <div
      class={`drop${isOver ? " is-over" : ""}`}
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        event.preventDefault();
        setOver(false);
        onFiles(event.dataTransfer?.files ?? []);
      }}
    >
      {children}
      <Button onClick={() => input.current?.click()}>{action}</Button>
      <input
        ref={input}
        class="visually-hidden"
        type="file"
        multiple={isMultiple}
        tabIndex={-1}
        aria-label={label}
        onChange={(event) => {
          onFiles([...(event.currentTarget.files ?? [])]);
          // The same file may be chosen again.
          event.currentTarget.value = "";
        }}
      />
    </div>
  );
}
