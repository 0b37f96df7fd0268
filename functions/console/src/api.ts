/** Typed requests to the API. The key is sent to the API's own address and to no other. */
import type { components, paths } from "../build/api";
import { API } from "./base";
import { readError, toApiError } from "./errors";
import { issuerOf, key, refusal } from "./session";

export type Schemas = components["schemas"];
type Method = "get" | "post" | "delete";

/** The paths that have a method. */
export type PathOf<M extends Method> = {
  [P in keyof paths]: paths[P] extends Record<M, { responses: unknown }> ? P : never;
}[keyof paths];

type Operation<M extends Method, P extends PathOf<M>> = paths[P] extends Record<M, infer O> ? O : never;

/** The document of a successful answer. */
export type Answer<M extends Method, P extends PathOf<M>> =
  Operation<M, P> extends { responses: { 200: { content: { "application/json": infer J } } } } ? J : undefined;

/** The document of a request. */
export type Body<M extends Method, P extends PathOf<M>> =
  Operation<M, P> extends { requestBody?: { content: { "application/json": infer J } } } ? NonNullable<J> : undefined;

type Query<M extends Method, P extends PathOf<M>> =
  Operation<M, P> extends { parameters: { query?: infer Q } } ? NonNullable<Q> : Record<string, never>;

export type Value = string | number | boolean | null | undefined;

export interface Options<Q = Record<string, Value | readonly Value[]>> {
  /** Values of the variables of the path. */
  params?: Readonly<Record<string, string>>;
  query?: Q;
  headers?: Readonly<Record<string, string>>;
  signal?: AbortSignal;
  /** A credential to try in the place of the one that this tab has. */
  credential?: string;
}

export const get = <P extends PathOf<"get">>(path: P, options: Options<Query<"get", P>> = {}) =>
  requestJson<Answer<"get", P>>("GET", path, undefined, options as Options);

export const post = <P extends PathOf<"post">>(
  path: P,
  body: Partial<Body<"post", P>>,
  options: Options<Query<"post", P>> = {},
) => requestJson<Answer<"post", P>>("POST", path, body, options as Options);

export const remove = <P extends PathOf<"delete">>(path: P, options: Options<Query<"delete", P>> = {}) =>
  requestJson<Answer<"delete", P>>("DELETE", path, undefined, options as Options);

async function requestJson<T>(method: string, path: string, body: unknown, options: Options): Promise<T> {
  const response = await send(method, path, body, options);
  try {
    return (response.status === 204 ? undefined : await response.json()) as T;
  } catch (error) {
    throw toApiError(error);
  }
}

/** Send a request, and return its response if it is ok. Raises ApiError. A body is JSON, or a form with files. */
export async function send(method: string, path: string, body?: unknown, options: Options = {}): Promise<Response> {
  const url = addressOf(path, options.params, options.query);
  if (options.credential === undefined) await issuerOf.peek()?.renew();
  const headers = new Headers(options.headers);
  const sent = options.credential ?? key.value;
  if (sent && url.origin === window.location.origin) headers.set("authorization", `Bearer ${sent}`);
  const isForm = body instanceof FormData;
  if (body !== undefined && !isForm) headers.set("content-type", "application/json");
  let response: Response;
  try {
    response = await fetch(url, {
      method,
      headers,
      body: body === undefined ? null : isForm ? body : JSON.stringify(body),
      signal: options.signal ?? null,
      credentials: "omit",
      redirect: "error",
      cache: "no-store",
    });
  } catch (error) {
    throw toApiError(error);
  }
  if (response.ok) return response;
  const failure = await readError(response);
  if (failure.status === 401 && sent === key.value) refusal.value = failure.message;
  throw failure;
}

/** Return the address of a path of the API. */
export function addressOf(path: string, params: Options["params"] = {}, query: Options["query"] = {}): URL {
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(params[name] ?? ""));
  const url = new URL(filled.replace(/^\//, ""), API);
  for (const [name, value] of Object.entries(query)) {
    for (const each of [value].flat()) {
      if (each !== undefined && each !== null) url.searchParams.append(name, String(each));
    }
  }
  return url;
}
