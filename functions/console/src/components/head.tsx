import type { ComponentChildren, JSX } from "preact";
import { Fragment } from "preact";
import { Link } from "../router";

interface PageHeadProps {
  title: ComponentChildren;
  /** The pages above this one, from the highest: their paths and titles. */
  above?: readonly (readonly [string, string])[];
  /** By it, the title gets the focus. */
  id?: string;
  lead?: ComponentChildren;
  /** The button of the page. */
  action?: ComponentChildren;
  /** What belongs to the title. */
  children?: ComponentChildren;
}

/** The head of a page. */
export function PageHead({ title, above = [], id, lead, action, children }: PageHeadProps): JSX.Element {
  return (
    <header class="page-head">
      {above.length > 0 && (
        <p class="hint wrap">
          {above.map(([to, name], index) => (
            <Fragment key={to}>
              {index > 0 && " › "}
              <Link to={to}>{name}</Link>
            </Fragment>
          ))}
        </p>
      )}
      <div class="section-head">
        <h1 class="wrap" {...(id && { id, tabIndex: -1 })}>
          {title}
        </h1>
        {action}
      </div>
      {lead && <p class="lead wrap">{lead}</p>}
      {children}
    </header>
  );
}
