/** Upload of files, with progress. fetch does not tell how much of a body was sent, so this is an XMLHttpRequest. */
import { addressOf, post, type Schemas, send } from "./api";
import { ApiError, readError } from "./errors";
import { issuerOf, key, refusal } from "./session";
import { wait } from "./stream";

export type UploadedFile = Schemas["FileObject"];

/** The largest file in one request, and the size of the parts of a larger one. API Gateway refuses more. */
const LARGEST_REQUEST = 4_400_000;
const PART = 4_000_000;

/** The largest file that the API stores, and the largest one that it reads for a vector store. */
const LARGEST_FILE = 512_000_000;
export const LARGEST_DOCUMENT = 50_000_000;

const ATTEMPTS = 4;

export interface UploadOptions {
  /** Called with the bytes that the server has got so far. */
  onProgress: (sent: number) => void;
  signal: AbortSignal;
}

/** Upload a file, in parts if it is large. Raises ApiError. */
export async function uploadFile(file: File, options: UploadOptions): Promise<UploadedFile> {
  if (file.size === 0) throw new ApiError(400, "empty_file", "The file is empty.");
  if (file.size > LARGEST_FILE) throw new ApiError(413, "too_large", "A file can have at most 512 MB.");
  if (file.size > LARGEST_REQUEST) return uploadInParts(file, options);
  const form = new FormData();
  form.set("purpose", "assistants");
  form.set("file", file);
  return sendForm<UploadedFile>("/v1/files", {}, form, options);
}

async function uploadInParts(file: File, options: UploadOptions): Promise<UploadedFile> {
  const { signal } = options;
  const body = {
    bytes: file.size,
    filename: file.name,
    mime_type: file.type || "application/octet-stream",
    purpose: "assistants" as const,
  };
  const upload = await post("/v1/uploads", body, { signal });
  const params = { upload_id: upload.id };
  try {
    const parts: string[] = [];
    for (let start = 0; start < file.size; start += PART) {
      parts.push(await sendPart(file.slice(start, start + PART), params, start, options));
    }
    const done = await post("/v1/uploads/{upload_id}/complete", { part_ids: parts }, { params, signal });
    return done.file!;
  } catch (error) {
    // The server would delete the parts after an hour.
    send("POST", "/v1/uploads/{upload_id}/cancel", {}, { params }).catch(() => undefined);
    throw error;
  }
}

/** Send a part, again if the way to the server or the server failed. */
async function sendPart(
  data: Blob,
  params: Record<string, string>,
  start: number,
  { onProgress, signal }: UploadOptions,
): Promise<string> {
  for (let attempt = 1; ; attempt += 1) {
    const form = new FormData();
    form.set("data", data, "part");
    try {
      const own = { signal, onProgress: (sent: number) => onProgress(start + Math.min(sent, data.size)) };
      return (await sendForm<Schemas["UploadPart"]>("/v1/uploads/{upload_id}/parts", params, form, own)).id;
    } catch (error) {
      const { code, status, retryAfter } = error as ApiError;
      const isTemporary = code === "unreachable" || status === 429 || status >= 500;
      if (!isTemporary || attempt === ATTEMPTS) throw error;
      await wait(Math.min(retryAfter ?? 2 ** attempt, 30) * 1000, signal);
    }
  }
}

async function sendForm<T>(
  path: string,
  params: Record<string, string>,
  form: FormData,
  { onProgress, signal }: UploadOptions,
): Promise<T> {
  await issuerOf.peek()?.renew();
  return new Promise((resolve, reject) => {
    const stopped = () => new ApiError(0, "aborted", "Stopped.");
    if (signal.aborted) {
      reject(stopped());
      return;
    }
    const request = new XMLHttpRequest();
    const stop = () => request.abort();
    signal.addEventListener("abort", stop, { once: true });
    request.open("POST", addressOf(path, params).href);
    const sent = key.peek();
    if (sent) request.setRequestHeader("authorization", `Bearer ${sent}`);
    request.upload.onprogress = (event) => onProgress(event.loaded);
    request.onabort = () => reject(stopped());
    request.onerror = () => reject(new ApiError(0, "unreachable", "The connection broke. Check that you are online."));
    request.onload = () => void readAnswer<T>(request, sent).then(resolve, reject);
    request.onloadend = () => signal.removeEventListener("abort", stop);
    request.send(form);
  });
}

async function readAnswer<T>(request: XMLHttpRequest, sent: string): Promise<T> {
  const { status, responseText } = request;
  if (status === 200) return JSON.parse(responseText) as T;
  const headers = new Headers();
  for (const name of ["retry-after", "x-request-id"]) {
    const value = request.getResponseHeader(name);
    if (value !== null) headers.set(name, value);
  }
  const failure = await readError(new Response(responseText, { status, headers }));
  if (status === 401 && sent === key.peek()) refusal.value = failure.message;
  throw failure;
}
