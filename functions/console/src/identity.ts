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
    identity.value = { tenant: "default", scopes: null, name: null };
    return;
  }
  const id = KEY.exec(key.peek())?.[1];
  identity.value = { tenant: null, scopes: null, name: null };
  if (!id) return;
  try {
    const record = await get("/v1/admin/keys/{key_id}", { params: { key_id: id } });
    identity.value = { tenant: record.tenant, scopes: record.scopes, name: record.name };
  } catch (error) {
    if (!(error instanceof ApiError) || error.status === 401) throw error;
  }
}
