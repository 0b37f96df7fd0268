/** The endpoints of an issuer, and requests to them. No credential of this origin is sent there. */
import { ApiError, isRecord, toApiError } from "./errors";
import { refused } from "./oidc-tokens";
import type { Config } from "./session";

export interface Issuer {
  authorization_endpoint: string;
  token_endpoint: string;
  /** "": it has none. */
  end_session_endpoint: string;
}

let found: Promise<Issuer> | null = null;

/** Read the discovery document, once. Raises ApiError. */
export function discover(settings: Config): Promise<Issuer> {
  found ??= readIssuer(settings).catch((error: unknown) => {
    found = null;
    throw error;
  });
  return found;
}

async function readIssuer({ issuer }: Config): Promise<Issuer> {
  const document = await fetchJson(`${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`);
  if (document["issuer"] !== issuer) throw refused("The discovery document is of another issuer.");
  const endpoint = (name: string) => {
    const address = document[name];
    if (typeof address !== "string" || !isSecure(address)) throw refused(`The issuer has no secure ${name}.`);
    return address;
  };
  return {
    authorization_endpoint: endpoint("authorization_endpoint"),
    token_endpoint: endpoint("token_endpoint"),
    end_session_endpoint: document["end_session_endpoint"] ? endpoint("end_session_endpoint") : "",
  };
}

/** Ask the token endpoint. Raises ApiError. */
export async function askForTokens(settings: Config, fields: Record<string, string>): Promise<unknown> {
  const { token_endpoint } = await discover(settings);
  const body = new URLSearchParams({ ...fields, client_id: settings.client_id });
  return fetchJson(token_endpoint, { method: "POST", body });
}

async function fetchJson(url: string, init: RequestInit = {}): Promise<Record<string, unknown>> {
  let response: Response;
  try {
    response = await fetch(url, {
      ...init,
      credentials: "omit",
      redirect: "error",
      cache: "no-store",
      referrerPolicy: "no-referrer",
    });
  } catch (error) {
    const { code } = toApiError(error);
    throw new ApiError(0, code, `${new URL(url).host} does not answer, or does not allow this page to ask it.`);
  }
  const document: unknown = await response.json().catch(() => null);
  const answer = isRecord(document) ? document : {};
  if (response.ok) return answer;
  throw new ApiError(response.status, String(answer["error"] ?? "sign_in_refused"), describe(answer));
}

/** Return the words of an error of OAuth (RFC 6749, sections 4.1.2.1 and 5.2). */
export function describe(answer: Record<string, unknown>): string {
  const words = answer["error_description"] || answer["error"];
  return `The issuer refused the sign-in${typeof words === "string" && words ? `: ${words.slice(0, 500)}` : "."}`;
}

/** Return whether an address is https, or http to this machine. */
function isSecure(address: string): boolean {
  if (!URL.canParse(address)) return false;
  const { protocol, hostname } = new URL(address);
  return protocol === "https:" || (protocol === "http:" && ["127.0.0.1", "localhost", "[::1]"].includes(hostname));
}
