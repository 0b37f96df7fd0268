/** Sign in, and find out who the caller is. */
import { get } from "./api";
import { ApiError } from "./errors";
import { config, identity, keep, key } from "./session";

const KEY = /^stk_([0-9a-f]{32})_[0-9a-f]{64}$/;

/** Keep a credential if the API accepts it. Raises ApiError, and keeps the one before. */
export async function signIn(credential: string): Promise<void> {
  await get("/v1/version", { credential });
  keep(credential);
  await identify();
}

/** Read what the API says about the caller. It says it to admins only, about an API key. */
export async function identify(): Promise<void> {
  if (config.value?.auth === "none") {
    identity.value = { tenant: "default", scopes: null, lacks: [], name: null };
    return;
  }
  const id = ownKeyId();
  let lacks: string[] = [];
  try {
    if (id) {
      const record = await get("/v1/admin/keys/{key_id}", { params: { key_id: id } });
      identity.value = { tenant: record.tenant, scopes: record.scopes, lacks, name: record.name };
      return;
    }
    // The cheapest request that needs the scope: the API says nothing else about the owner of a token.
    await get("/v1/admin/stop");
  } catch (error) {
    if (!(error instanceof ApiError) || error.status === 401) throw error;
    if (error.status === 403) lacks = ["admin"];
  }
  identity.value = { tenant: null, scopes: null, lacks, name: null };
}

/** Return the id of the API key of this tab, or "" if its credential is another one. */
export function ownKeyId(): string {
  return KEY.exec(key.peek())?.[1] ?? "";
}
