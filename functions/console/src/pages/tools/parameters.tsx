import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { Button } from "../../components/button";
import { formatCount, formatName } from "../../format";
import type { Tool } from "./api";

const SHOWN = 30;

/** The parameters of a tool as a table. */
export function Parameters({ tool }: { tool: Tool }): JSX.Element {
  const [isWhole, setWhole] = useState(false);
  const all = tool.parameters;
  if (all.length === 0) return <p class="hint">It declares no parameters.</p>;
  const shown = isWhole ? all : all.slice(0, SHOWN);
  return (
    <>
      <table class="table">
        <caption class="visually-hidden">Parameters of the tool</caption>
        <thead>
          <tr>
            <th scope="col">Parameter</th>
            <th scope="col">Type</th>
            <th scope="col">Description</th>
          </tr>
        </thead>
        <tbody>
          {shown.map(({ name, parameter_type: type, description, required, default: initial }) => (
            <tr key={name}>
              <td data-title="Parameter">
                <code>{formatName(name)}</code>
              </td>
              <td data-title="Type">
                {type}
                {!required && <span class="hint">, optional</span>}
              </td>
              <td data-title="Description">
                {description.slice(0, 1000)}
                {initial !== null && initial !== undefined && (
                  <span class="hint"> Default: {JSON.stringify(initial).slice(0, 200)}</span>
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {all.length > shown.length && (
        <Button kind="quiet" onClick={() => setWhole(true)}>
          Show all {formatCount(all.length)} parameters
        </Button>
      )}
    </>
  );
}
