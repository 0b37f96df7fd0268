import type { ComponentChildren, JSX } from "preact";

interface CheckProps {
  label: ComponentChildren;
  isOn: boolean;
  onChange: (isOn: boolean) => void;
  /** Of those that share a name, one is on. */
  name?: string;
}

/** A box to check, or one of several choices. */
export function Check({ label, isOn, onChange, name }: CheckProps): JSX.Element {
  return (
    <label class="check">
      <input
        type={name ? "radio" : "checkbox"}
        name={name ?? ""}
        checked={isOn}
        onChange={(event) => onChange(event.currentTarget.checked)}
      />
      <span>{label}</span>
    </label>
  );
}
