/** Sign in, and find out who the caller is. */
import { get, type Schemas } from "./api";
import { config, identity, keep } from "./session";

/** Keep a credential if the API accepts it. Raises ApiError, and keeps the one before. */
export async function signIn(credential: string): Promise<void> {
  const caller = await get("/v1/whoami", { credential });
  keep(credential);
  show(caller);
}

/** Read what the API says about the caller. */
export async function identify(): Promise<void> {
  if (config.value?.auth === "none") identity.value = { tenant: "default", scopes: null, keyId: "" };
  else show(await get("/v1/whoami"));
}

function show({ tenant, scopes, key_id }: Schemas["Caller"]): void {
  identity.value = { tenant, scopes, keyId: key_id ?? "" };
}

/** Return the id of the API key of this tab, or "" if its credential is another one. */
export function ownKeyId(): string {
  return identity.value?.keyId ?? "";
}
