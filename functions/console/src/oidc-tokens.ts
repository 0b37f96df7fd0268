/** Tokens of an OpenID Connect issuer, as a public client reads them. The server checks what it accepts by itself. */
import { ApiError, isRecord } from "./errors";
import type { Config } from "./session";

export interface Tokens {
  access_token: string;
  id_token: string;
  refresh_token: string;
  /** Milliseconds since 1970. */
  expires_at: number;
}

/** Accepted difference of clocks, in seconds. */
const SKEW = 60;

/** Read the answer of the token endpoint. Without `nonce`, it is that of a refresh. Raises ApiError. */
export function readTokens(answer: unknown, settings: Config, before: Tokens | null, nonce?: string): Tokens {
  const found = isRecord(answer) ? answer : {};
  const text = (name: string) => (typeof found[name] === "string" ? found[name] : "");
  const id = text("id_token");
  if (nonce !== undefined || id) checkIdToken(id, settings, nonce, before);
  const tokens = {
    access_token: text("access_token"),
    id_token: id || (before?.id_token ?? ""),
    refresh_token: text("refresh_token") || (before?.refresh_token ?? ""),
    expires_at: 0,
  };
  const expires = Number(found["expires_in"]);
  const end = timeOf(claimsOf(credentialOf(tokens, settings))["exp"]);
  tokens.expires_at = end || Date.now() + (Number.isFinite(expires) && expires > 0 ? expires : 300) * 1000;
  return tokens;
}

/**
 * Check an ID token (OpenID Connect Core, 3.1.3.7). Its signature need not be checked, because it comes from the token
 * endpoint itself, over TLS. Raises ApiError.
 */
function checkIdToken(token: string, settings: Config, nonce: string | undefined, before: Tokens | null): void {
  const claims = claimsOf(token);
  if (claims["iss"] !== settings.issuer) throw refused("The ID token is of another issuer.");
  if (!listOf(claims["aud"]).includes(settings.client_id)) throw refused("The ID token is for another client.");
  if (listOf(claims["aud"]).length > 1 && claims["azp"] !== settings.client_id) {
    throw refused("The ID token is for several clients.");
  }
  if (nonce !== undefined && claims["nonce"] !== nonce) throw refused("The ID token does not belong to this sign-in.");
  if (timeOf(claims["exp"]) + SKEW * 1000 <= Date.now()) throw refused("The ID token has expired.");
  if (before?.id_token && claims["sub"] !== claimsOf(before.id_token)["sub"]) {
    throw refused("The ID token is of somebody else.");
  }
}

/**
 * Return the token that the API accepts: the one for its audience. That is the access token, but some issuers cannot
 * give it an audience; then it may be the ID token. Raises ApiError.
 */
export function credentialOf({ access_token, id_token }: Tokens, { audience }: Config): string {
  const found = [access_token, id_token].find((token) => listOf(claimsOf(token)["aud"]).includes(audience));
  if (found) return found;
  const given = listOf(claimsOf(access_token)["aud"]).join(", ") || "none";
  throw refused(`The access token has the audience ${given}, and this server accepts ${audience}.`);
}

/** Return the claims of a JWT without a check; none if it is no JWT. */
export function claimsOf(token: string): Record<string, unknown> {
  try {
    const part = token.split(".")[1] ?? "";
    const bytes = Uint8Array.from(atob(part.replaceAll("-", "+").replaceAll("_", "/")), (each) => each.charCodeAt(0));
    const claims: unknown = JSON.parse(new TextDecoder().decode(bytes));
    return isRecord(claims) ? claims : {};
  } catch {
    return {};
  }
}

function listOf(value: unknown): unknown[] {
  return value === undefined ? [] : [value].flat();
}

function timeOf(seconds: unknown): number {
  return typeof seconds === "number" ? seconds * 1000 : 0;
}

export function refused(message: string): ApiError {
  return new ApiError(0, "sign_in_refused", message);
}
