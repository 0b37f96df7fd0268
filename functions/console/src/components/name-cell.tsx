import type { JSX } from "preact";
import { cut, formatName } from "../format";
import { Link } from "../router";

/** The name of an object in a list, which leads to its page, and its id. */
export function NameCell({ to, name, id }: { to?: string; name: string | null; id: string }): JSX.Element {
  const shown = cut(formatName(name ?? ""), 200) || "Without a name";
  return (
    <>
      {to ? (
        <Link to={to} class="name">
          {shown}
        </Link>
      ) : (
        <span class="name">{shown}</span>
      )}
      <code class="id">{id}</code>
    </>
  );
}
