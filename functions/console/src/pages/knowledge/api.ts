/** What the pages of knowledge read and change. */
import { get, type Schemas } from "../../api";
import type { Page } from "../../components/list";
import { formatName } from "../../format";
import { may } from "../../session";

export type Store = Schemas["VectorStore"];
export type StoreFile = Schemas["VectorStoreFile"];
export type StoredFile = Schemas["FileObject"];

export const STORE = "/v1/vector_stores/{vector_store_id}";
export const STORE_FILES = "/v1/vector_stores/{vector_store_id}/files";
export const STORE_FILE = "/v1/vector_stores/{vector_store_id}/files/{file_id}";

const PAGE = 50;

/** Return whether the caller may change stores. `registry:write` includes the right. */
export function mayWrite(): boolean {
  return may("knowledge:write");
}

export const isStoreId = (text: string): boolean => /^vs_[\w-]{1,61}$/.test(text.trim());

/** Return the query of the page after some items. */
function after(before: readonly { id: string }[]) {
  const last = before.at(-1);
  return { limit: PAGE, order: "desc" as const, ...(last && { after: last.id }) };
}

export async function readStores(before: readonly Store[], signal: AbortSignal): Promise<Page<Store>> {
  const { data, has_more: hasMore } = await get("/v1/vector_stores", { query: after(before), signal });
  return { items: data, hasMore: Boolean(hasMore) };
}

export async function readFiles(before: readonly StoredFile[], signal: AbortSignal): Promise<Page<StoredFile>> {
  const { data, has_more: hasMore } = await get("/v1/files", { query: after(before), signal });
  return { items: data, hasMore: Boolean(hasMore) };
}

export async function readStoreFiles(
  store: string,
  filter: StoreFile["status"] | null,
  before: readonly StoreFile[],
  signal: AbortSignal,
): Promise<Page<StoreFile>> {
  const query = { ...after(before), ...(filter && { filter }) };
  const { data, has_more: hasMore } = await get(STORE_FILES, { params: { vector_store_id: store }, query, signal });
  return { items: data, hasMore: Boolean(hasMore) };
}

/** Return the sentence about a failure. The API's own words have the reason. */
export function reasonOf({ last_error: error }: StoreFile): string {
  if (!error) return "";
  return formatName(error.message) || FAILURES[error.code];
}

const FAILURES: Readonly<Record<NonNullable<StoreFile["last_error"]>["code"], string>> = {
  unsupported_file: "The format of the file is not supported.",
  invalid_file: "The file cannot be read.",
  server_error: "The server failed. Add the file again.",
};
