import type { ButtonHTMLAttributes, ComponentChildren, JSX } from "preact";

type Kind = "primary" | "secondary" | "quiet" | "danger";

interface ButtonProps extends Omit<ButtonHTMLAttributes<HTMLButtonElement>, "class"> {
  class?: string;
  kind?: Kind;
  /** The action runs: the button cannot be pressed again, and keeps its width. */
  busy?: boolean;
  children: ComponentChildren;
}

export function Button({
  kind = "secondary",
  busy = false,
  disabled,
  children,
  class: own = "",
  ...rest
}: ButtonProps): JSX.Element {
  return (
    <button
      type="button"
      {...rest}
      class={`button button-${kind}${busy ? " is-busy" : ""} ${own}`}
      disabled={Boolean(disabled) || busy}
      aria-busy={busy}
    >
      <span>{children}</span>
    </button>
  );
}
