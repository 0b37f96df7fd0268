import { signal } from "@preact/signals";
import type { JSX } from "preact";

interface Message {
  id: number;
  text: string;
}

const SHOWN = 5000;
const messages = signal<readonly Message[]>([]);
let last = 0;

/** Show a short message for five seconds, and read it to users of screen readers. */
export function toast(text: string): void {
  const id = (last += 1);
  messages.value = [...messages.value.slice(-2), { id, text }];
  setTimeout(() => {
    messages.value = messages.value.filter((each) => each.id !== id);
  }, SHOWN);
}

export function Toasts(): JSX.Element {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {messages.value.map(({ id, text }) => (
        <p key={id} class="toast">
          {text}
        </p>
      ))}
    </div>
  );
}
