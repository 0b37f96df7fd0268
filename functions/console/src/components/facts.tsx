import type { ComponentChildren, JSX } from "preact";
import { Fragment } from "preact";
import { CopyButton } from "./copy";

type Row = readonly [name: string, value: ComponentChildren];

/** Names and their values. A row that is empty is left out. */
export function Facts({ rows }: { rows: readonly (Row | false | null | undefined)[] }): JSX.Element {
  return (
    <dl class="facts">
      {rows.map(
        (row) =>
          row && (
            <Fragment key={row[0]}>
              <dt>{row[0]}</dt>
              <dd>{row[1]}</dd>
            </Fragment>
          ),
      )}
    </dl>
  );
}

/** An id, and a button that copies it. */
export function Id({ id, of }: { id: string; of: string }): JSX.Element {
  return (
    <span class="with-action">
      <code>{id}</code>
      <CopyButton text={id} what={`id of ${of}`} />
    </span>
  );
}
