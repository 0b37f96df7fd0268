import type { ComponentChildren, JSX } from "preact";

interface StepProps {
  number: number;
  title: string;
  isDone: boolean;
  children: ComponentChildren;
}

/** A numbered card of a list of steps. */
export function Step({ number, title, isDone, children }: StepProps): JSX.Element {
  return (
    <li class={`card step${isDone ? " is-done" : ""}`}>
      <h2>
        <span class="step-number" aria-hidden="true">
          {isDone ? "✓" : number}
        </span>
        {title}
        {isDone && <span class="visually-hidden"> (done)</span>}
      </h2>
      <div>{children}</div>
    </li>
  );
}
