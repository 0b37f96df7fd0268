import type { JSX } from "preact";

export type WhenBusy = "reject" | "enqueue" | "interrupt" | "merge";

export const BUSY_WORDS: readonly [WhenBusy, string][] = [
  ["reject", "refuse this message"],
  ["enqueue", "wait in line"],
  ["interrupt", "stop it, then run this"],
  ["merge", "add this to it"],
];

/** The choice that leaves `when_busy` out. */
export const DEFAULT_BUSY = "default (reject)";

/** What happens with a message while another one runs. */
export function BusyField({
  value,
  inherited,
  onChange,
}: {
  value: WhenBusy | "";
  /** The value that the agent has. */
  inherited?: WhenBusy | null | undefined;
  onChange: (value: WhenBusy | "") => void;
}): JSX.Element {
  return (
    <label class="inline-field">
      <span>While another one runs</span>
      <select value={value} onChange={(event) => onChange(event.currentTarget.value as WhenBusy | "")}>
        <option value="">{inherited ? `agent's setting (${inherited})` : DEFAULT_BUSY}</option>
        {BUSY_WORDS.map(([each, words]) => (
          <option key={each} value={each}>
            {each}: {words}
          </option>
        ))}
      </select>
    </label>
  );
}
