import type { JSX } from "preact";
import { hrefOf, Link, place } from "../router";

interface TabsProps {
  label: string;
  tabs: readonly { to: string; title: string }[];
}

/** Links between the parts of a page, each of which has an address. */
export function Tabs({ label, tabs }: TabsProps): JSX.Element {
  const here = hrefOf(place.value.path);
  return (
    <nav class="tabs" aria-label={label}>
      {tabs.map(({ to, title }) => (
        <Link key={to} to={to} aria-current={hrefOf(to) === here ? "page" : undefined}>
          {title}
        </Link>
      ))}
    </nav>
  );
}
