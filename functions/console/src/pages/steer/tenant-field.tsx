import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { Button } from "../../components/button";
import { TextField } from "../../components/field";
import { identity } from "../../session";

const TENANT = /^[a-z0-9][a-z0-9-]{0,31}$/;

/** The tenant that a page shows: the caller's own (""), or one that an operator chooses. */
export function useTenant(): { tenant: string; query: { tenant?: string }; setTenant: (tenant: string) => void } {
  const [tenant, setTenant] = useState("");
  return { tenant, query: tenant ? { tenant } : {}, setTenant };
}

/** Choose a tenant. Only administrators of the operator's tenant may read another one than their own. */
export function TenantField({ tenant, onChange }: { tenant: string; onChange: (tenant: string) => void }): JSX.Element {
  const [text, setText] = useState(tenant);
  const [error, setError] = useState("");
  const own = identity.value?.tenant ?? "your own";
  const submit = (event: Event) => {
    event.preventDefault();
    const isValid = !text || TENANT.test(text);
    setError(isValid ? "" : "A tenant has up to 32 of a-z, 0-9 and '-'.");
    if (isValid) onChange(text === identity.value?.tenant ? "" : text);
  };
  return (
    <form class="line-form" onSubmit={submit}>
      <TextField
        label="Tenant"
        error={error}
        autoComplete="off"
        spellcheck={false}
        placeholder={own}
        value={text}
        onText={(typed) => setText(typed.trim())}
      />
      <Button type="submit">Show</Button>
    </form>
  );
}
