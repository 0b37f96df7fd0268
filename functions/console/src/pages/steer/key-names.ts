/** API keys as readers know them. */
import { get, type Schemas } from "../../api";
import { may } from "../../session";

export type ApiKey = Schemas["ApiKeyObject"];
export type Scope = ApiKey["scopes"][number];

export const SCOPES: Readonly<Record<Scope, string>> = {
  use: "call agents, models and tools, and read what they store",
  "knowledge:write": "write vector stores",
  "registry:write": "register models, toolgroups and shields; write vector stores",
  "users:act": "act for an end user (X-Stint-User)",
  "webhooks:write": "manage webhook endpoints, and read their URLs",
  admin: "manage keys, stops and end users",
};

/** Read as many keys as fit into one answer, the newest first; none if the caller may not. */
export async function readKeys(signal: AbortSignal): Promise<readonly ApiKey[]> {
  if (!may("admin")) return [];
  return (await get("/v1/admin/keys", { signal })).data;
}

/** Return the name of a key, or the beginning of its id. */
export function nameOfKey(key: { id: string; name: string }): string {
  return key.name || `Key ${shortId(key.id)}`;
}

export function shortId(id: string): string {
  return id.length > 12 ? `…${id.slice(-8)}` : id;
}

export function stateOf(key: ApiKey): "active" | "expired" | "revoked" {
  if (key.revoked_at) return "revoked";
  return key.expires_at && key.expires_at * 1000 <= Date.now() ? "expired" : "active";
}
