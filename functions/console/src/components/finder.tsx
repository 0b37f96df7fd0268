/** The search of a list, kept in the address of the page. */
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { navigate, place } from "../router";
import { ChoiceField, TextField } from "./field";

export interface Filters {
  text: string;
  status: string;
}

const PAUSE = 300;

/** Return what the address asks for. */
export function useFilters(): Filters {
  const { query } = place.value;
  return { text: query.get("find") ?? "", status: query.get("status") ?? "" };
}

interface FinderProps {
  filters: Filters;
  /** By what entries are found, such as "Name or id". */
  label: string;
  statuses?: readonly string[];
}

export function Finder({ filters, label, statuses = [] }: FinderProps): JSX.Element {
  const [text, setText] = useState(filters.text);
  const timer = useRef(0);
  useEffect(() => () => clearTimeout(timer.current), []);
  const find = (changes: Partial<Filters>) => {
    clearTimeout(timer.current);
    const { text: sought, status } = { ...filters, text, ...changes };
    const query = new URLSearchParams();
    if (sought.trim()) query.set("find", sought.trim());
    if (status) query.set("status", status);
    const { path } = place.peek();
    navigate(query.size > 0 ? `${path}?${query}` : path, { replace: true });
  };
  const type = (next: string) => {
    setText(next);
    clearTimeout(timer.current);
    timer.current = window.setTimeout(() => find({ text: next }), PAUSE);
  };
  return (
    <form
      role="search"
      class="finder"
      onSubmit={(event) => {
        event.preventDefault();
        find({ text });
      }}
    >
      <TextField label={label} type="search" value={text} maxLength={200} placeholder="Find" onText={type} />
      {statuses.length > 0 && (
        <ChoiceField
          label="Status"
          value={filters.status}
          choices={[["", "any"], ...statuses.map((status) => [status, status.replaceAll("_", " ")] as const)]}
          onChoose={(status) => find({ status })}
        />
      )}
    </form>
  );
}
