/**
 * Sign-in with an OpenID Connect issuer: the authorization code flow of a public client, with PKCE (RFC 7636).
 *
 * The first sign-in leaves the page and comes back. A later one, when a token has expired, happens in a window of its
 * own, so that nothing typed is lost: that window passes the address with the code on by a BroadcastChannel, which only
 * pages of this origin have, and the tab that began compares `state`. The code alone is worth nothing: the verifier
 * stays in the tab.
 */
import { CONSOLE } from "./base";
import { toApiError } from "./errors";
import { askForTokens, describe, discover } from "./oidc-issuer";
import { credentialOf, readTokens, refused, type Tokens } from "./oidc-tokens";
import { navigate, place } from "./router";
import { config, type Config, isSignedIn, issuerOf, keep, key, notice, signInFault } from "./session";

interface Pending {
  state: string;
  nonce: string;
  verifier: string;
  /** The path to go back to. */
  path: string;
}

const CALLBACK = "/signed-in";
const TOKENS = "stint.tokens";
const PENDING = "stint.pending";
const CHANNEL = "stint.signed-in";
/** A token is renewed if it lasts less than this. */
const EARLY = 30_000;
/** Time for the tab that has opened a window to answer it. */
const ANSWER_WITHIN = 3000;

let tokens: Tokens | null = null;
let renewal: Promise<void> | null = null;

/** Take part in what the page does with its credential, and end a sign-in that has come back. */
export async function start(): Promise<void> {
  tokens = read<Tokens>(TOKENS);
  issuerOf.value = { renew, end };
  if (place.peek().path !== CALLBACK) return;
  const answer = place.peek().query;
  const pending = read<Pending>(PENDING);
  sessionStorage.removeItem(PENDING);
  try {
    if (pending === null || pending.state !== answer.get("state")) return await passOn(answer);
    await finish(pending, answer, null);
    navigate(pending.path, { replace: true });
  } catch (error) {
    const { message } = toApiError(error);
    if (isSignedIn.peek()) notice.value = message;
    else signInFault.value = message;
    navigate("/", { replace: true });
  }
}

/** Leave the page to sign in. Raises ApiError. */
export async function leave(): Promise<void> {
  const { path, query } = place.peek();
  const pending = newPending(query.size ? `${path}?${query}` : path);
  const address = await addressOf(settings(), pending);
  sessionStorage.setItem(PENDING, JSON.stringify(pending));
  window.location.assign(address);
}

/** Sign in again in a window of its own. Call it in the handler of a press, or the window is blocked. Raises ApiError. */
export async function signInAgain(): Promise<void> {
  const opened = window.open("about:blank", "_blank", "popup,width=520,height=680");
  if (!opened) throw refused("The browser did not allow the window of the sign-in. Allow it, and try again.");
  const pending = newPending("/");
  const channel = new BroadcastChannel(CHANNEL);
  try {
    opened.location.replace(await addressOf(settings(), pending));
    const answer = await answerOf(channel, pending.state);
    // What is on the page belongs to whoever has signed in before.
    await finish(pending, answer, tokens && { ...tokens, refresh_token: "" });
  } catch (error) {
    opened.close();
    throw error;
  } finally {
    channel.close();
  }
}

/** Wait for the window with this state, and let it close. */
function answerOf(channel: BroadcastChannel, state: string): Promise<URLSearchParams> {
  return new Promise((resolve) => {
    channel.onmessage = ({ data }) => {
      const answer = new URLSearchParams(String(data));
      if (answer.get("state") !== state) return;
      channel.postMessage({ taken: state });
      resolve(answer);
    };
  });
}

/** Pass the answer of the issuer on to the tab that has opened this window. Raises ApiError if there is none. */
async function passOn(answer: URLSearchParams): Promise<void> {
  const channel = new BroadcastChannel(CHANNEL);
  const taken = new Promise<boolean>((resolve) => {
    channel.onmessage = ({ data }) => {
      if ((data as { taken?: string }).taken === answer.get("state")) resolve(true);
    };
    setTimeout(() => resolve(false), ANSWER_WITHIN);
  });
  channel.postMessage(String(answer));
  const isTaken = await taken;
  channel.close();
  if (!isTaken) throw refused("This sign-in was not begun in this tab, or was begun twice. Sign in again.");
  // A window begins with a copy of what the tab had stored.
  sessionStorage.clear();
  notice.value = "The tab where you began has your answer. This window can be closed.";
  window.close();
}

/** Exchange the code for tokens, and keep them. Raises ApiError. */
async function finish(pending: Pending, answer: URLSearchParams, before: Tokens | null): Promise<void> {
  const own = settings();
  // An answer of another issuer could get the code of this one (RFC 9207).
  if (answer.has("iss") && answer.get("iss") !== own.issuer) throw refused("The answer is of another issuer.");
  if (answer.has("error")) {
    const words = answer.get("error") === "access_denied" ? null : describe(Object.fromEntries(answer));
    throw refused(words ?? "You did not allow the sign-in, or the issuer does not allow it for you.");
  }
  const fields = {
    grant_type: "authorization_code",
    code: answer.get("code") ?? "",
    redirect_uri: redirectUri(),
    code_verifier: pending.verifier,
  };
  accept(readTokens(await askForTokens(own, fields), own, before, pending.nonce));
}

/** Renew a token that is about to expire, if the issuer has given a refresh token. */
function renew(): Promise<void> {
  // Who has signed in with a key goes on with it.
  if (key.peek().startsWith("stk_")) forget();
  if (!tokens?.refresh_token || tokens.expires_at - Date.now() > EARLY) return Promise.resolve();
  renewal ??= refresh(tokens).finally(() => (renewal = null));
  return renewal;
}

async function refresh(before: Tokens): Promise<void> {
  const fields = { grant_type: "refresh_token", refresh_token: before.refresh_token };
  try {
    const renewed = readTokens(await askForTokens(settings(), fields), settings(), before);
    // A sign-out, or another sign-in, may have happened meanwhile.
    if (tokens === before) accept(renewed);
  } catch (error) {
    // The API refuses the old token, and the page then asks to sign in. A refused refresh token is not sent again.
    if (tokens === before && toApiError(error).status !== 0) store({ ...before, refresh_token: "" });
  }
}

/** Forget the tokens. Returns the address that ends the session at the issuer, if it has one. */
async function end(): Promise<string> {
  const id = tokens?.id_token;
  tokens = null;
  if (!id) return "";
  const { end_session_endpoint } = await discover(settings());
  if (!end_session_endpoint) return "";
  const address = new URL(end_session_endpoint);
  address.searchParams.set("id_token_hint", id);
  address.searchParams.set("client_id", settings().client_id);
  address.searchParams.set("post_logout_redirect_uri", CONSOLE.href);
  return address.href;
}

function forget(): void {
  tokens = null;
  sessionStorage.removeItem(TOKENS);
}

function accept(made: Tokens): void {
  store(made);
  keep(credentialOf(made, settings()));
}

function store(made: Tokens): void {
  tokens = made;
  // An access token that is also the credential is not stored twice.
  sessionStorage.setItem(TOKENS, JSON.stringify({ ...made, access_token: "" }));
}

async function addressOf(own: Config, { state, nonce, verifier }: Pending): Promise<string> {
  const { authorization_endpoint } = await discover(own);
  const address = new URL(authorization_endpoint);
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(verifier));
  const fields = {
    response_type: "code",
    client_id: own.client_id,
    redirect_uri: redirectUri(),
    scope: own.oidc_scopes,
    state,
    nonce,
    code_challenge: encode(new Uint8Array(digest)),
    code_challenge_method: "S256",
    audience: own.audience,
    // RFC 8707. A resource is a URI; other audiences are set at the issuer.
    ...(/^https?:/.test(own.audience) && { resource: own.audience }),
  };
  for (const [name, value] of Object.entries(fields)) address.searchParams.set(name, value);
  return address.href;
}

function newPending(path: string): Pending {
  const random = () => encode(crypto.getRandomValues(new Uint8Array(32)));
  return { state: random(), nonce: random(), verifier: random(), path };
}

/** Encode bytes in base64url. */
function encode(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "");
}

function redirectUri(): string {
  return new URL(CALLBACK.slice(1), CONSOLE).href;
}

function settings(): Config {
  return config.peek()!;
}

function read<T>(name: string): T | null {
  try {
    return JSON.parse(sessionStorage.getItem(name) ?? "null") as T | null;
  } catch {
    return null;
  }
}
