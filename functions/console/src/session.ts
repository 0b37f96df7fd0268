/** Who uses the page: its settings, the key of this tab, and what is known about its owner. */
import { computed, signal } from "@preact/signals";
import { CONSOLE } from "./base";
import { readError } from "./errors";

export interface Config {
  version: string;
  /** Who checks callers. `none`: nobody does. */
  auth: "authorizer" | "none";
  /** API keys are accepted. */
  keys: boolean;
  issuer: string;
  client_id: string;
  /** The audience of tokens that the API accepts. */
  audience: string;
  /** The scopes to ask the issuer for, with blanks between them. */
  oidc_scopes: string;
  /** The page is part of `make run`. */
  local: boolean;
}

export interface Identity {
  tenant: string;
  /** null: everyone may do everything. */
  scopes: readonly string[] | null;
  /** The id of the API key; "" if the credential is another one. */
  keyId: string;
}

const KEY = "stint.key";

export const config = signal<Config | null>(null);

/** The credential of this tab. The browser forgets it with the tab. */
export const key = signal(readKey());

export const identity = signal<Identity | null>(null);

/** The number of times that somebody has signed in. */
export const signIns = signal(0);

/** The API has refused the key: the words of its refusal. */
export const refusal = signal("");

/** Why a sign-in at the issuer has failed. */
export const signInFault = signal("");

/** Words in the place of the page, such as in a window that has done its work. */
export const notice = signal("");

/** What an issuer does with the credential of this tab. null: there is none. */
export const issuerOf = signal<{
  /** Renew a token that is about to expire. */
  renew: () => Promise<void>;
  /** Forget the tokens, and return the address that ends the session there, or "". */
  end: () => Promise<string>;
} | null>(null);

export const isSignedIn = computed(() => config.value?.auth === "none" || key.value !== "");

export async function loadConfig(): Promise<void> {
  const response = await fetch(new URL("config.json", CONSOLE), { credentials: "omit" });
  if (!response.ok) throw await readError(response);
  config.value = (await response.json()) as Config;
}

export function keep(credential: string): void {
  key.value = credential;
  signIns.value += 1;
  refusal.value = "";
  try {
    sessionStorage.setItem(KEY, credential);
  } catch {
    // The browser keeps nothing for this site: the key lives as long as the page.
  }
}

export function signOut(): void {
  key.value = "";
  identity.value = null;
  refusal.value = "";
  const ended = issuerOf.peek()?.end();
  try {
    sessionStorage.clear();
  } catch {
    // Nothing was kept.
  }
  ended?.then(
    (address) => address && window.location.assign(address),
    () => undefined,
  );
}

/** Return the words for a stream that broke and is opened again. */
export function reconnectingWords(): string {
  return `The connection broke. Trying again …${config.value?.local ? " Is “make run” still running?" : ""}`;
}

/** Return whether people sign in with the issuer. */
export function hasIssuer(): boolean {
  return Boolean(config.value?.issuer && config.value.client_id) && config.value?.auth !== "none";
}

/** Return whether the caller may use what needs a scope. `registry:write` is the only one that includes another. */
export function may(scope: string): boolean {
  const scopes = identity.value?.scopes;
  return !scopes || scopes.includes(scope) || (scope === "knowledge:write" && scopes.includes("registry:write"));
}

function readKey(): string {
  try {
    return sessionStorage.getItem(KEY) ?? "";
  } catch {
    return "";
  }
}
