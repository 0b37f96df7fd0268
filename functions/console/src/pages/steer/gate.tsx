import type { ComponentChildren, JSX } from "preact";
import { EmptyState } from "../../components/states";
import { config } from "../../session";

/** Show content that the API has for callers with a name only. */
export function NeedsSignIn({ what, children }: { what: string; children: ComponentChildren }): JSX.Element {
  if (config.value?.auth !== "none") return <>{children}</>;
  return (
    <>
      <h1>{what}</h1>
      <EmptyState title="This page needs sign-in">
        {config.value.local ? (
          <>
            This server accepts everyone. Start it with <code>make run AUTH=on</code>, which prints the first key.
          </>
        ) : (
          <>
            This server accepts everyone, so anyone could change them. Build it with{" "}
            <code>make build AUTH=authorizer</code>.
          </>
        )}
      </EmptyState>
    </>
  );
}
