import type { ComponentChildren, JSX } from "preact";

type Kind = "primary" | "secondary" | "quiet" | "danger";

interface ButtonProps extends JSX.ButtonHTMLAttributes<HTMLButtonElement> {
  kind?: Kind;
  /** The action runs: the button cannot be pressed again, and keeps its width. */
  busy?: boolean;
  children: ComponentChildren;
}

export function Button({ kind = "secondary", busy = false, disabled, children, ...rest }: ButtonProps): JSX.Element {
  return (
    <button
      type="button"
      {...rest}
      class={`button button-${kind}${busy ? " is-busy" : ""}`}
      disabled={Boolean(disabled) || busy}
      aria-busy={busy}
    >
      <span>{children}</span>
    </button>
  );
}
