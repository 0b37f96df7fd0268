/** Errors of the API, of both families, and of the way to it. */

/** An error of one field of a request. */
export interface FieldProblem {
  /** The names on the way to the field, joined by dots. */
  field: string;
  message: string;
}

export class ApiError extends Error {
  constructor(
    /** The HTTP status; 0 if there was no answer, or if a stream failed. */
    readonly status: number,
    readonly code: string,
    message: string,
    /** Seconds after which a retry may succeed. */
    readonly retryAfter: number | null = null,
    /** The id by which the operator finds the request in the logs. */
    readonly requestId: string | null = null,
    /** The fields of the request that the API refuses, if it names them. */
    readonly fields: readonly FieldProblem[] = [],
  ) {
    super(message);
  }
}

/** Return the error that a value of `catch` means to a reader. */
export function toApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  if (error instanceof DOMException && error.name === "AbortError") return new ApiError(0, "aborted", "Stopped.");
  if (error instanceof TypeError) {
    return new ApiError(0, "unreachable", "The server does not answer. Check that it runs and that you are online.");
  }
  return new ApiError(0, "unexpected", error instanceof Error ? error.message : String(error));
}

/** Read the error of a response that is not ok. */
export async function readError(response: Response): Promise<ApiError> {
  const text = await response.text().catch(() => "");
  const document = parse(text);
  const { code, message } = describeError(document, response.status);
  const wait = Number(response.headers.get("retry-after"));
  const retryAfter = response.headers.has("retry-after") && Number.isFinite(wait) ? wait : null;
  return new ApiError(
    response.status,
    code,
    message,
    retryAfter,
    response.headers.get("x-request-id"),
    fieldsOf(document),
  );
}

/** Return the fields that an error names: all of `detail.errors`, or the `param` of the first one. */
function fieldsOf(document: unknown): FieldProblem[] {
  if (!isRecord(document)) return [];
  const { detail, error } = document;
  if (isRecord(detail) && Array.isArray(detail["errors"])) {
    return detail["errors"].filter(isRecord).map(({ loc, msg }) => ({
      field: (Array.isArray(loc) ? loc : []).filter((part) => part !== "body").join("."),
      message: String(msg),
    }));
  }
  if (!isRecord(error) || typeof error["param"] !== "string" || !error["param"]) return [];
  return [{ field: error["param"].replace(/\[(\w+)\]/g, ".$1"), message: String(error["message"]) }];
}

/** Return the error in a document, if it is one: `{"error": {…}}`, `{"detail": …}` or `{"message": …}`. */
export function errorIn(document: unknown): ApiError | null {
  if (!isRecord(document) || !isRecord(document["error"])) return null;
  const { code, message } = describeError(document, 0);
  return new ApiError(0, code, message);
}

function describeError(document: unknown, status: number): { code: string; message: string } {
  const outer = isRecord(document) ? document : {};
  const inner = isRecord(outer["error"]) ? outer["error"] : {};
  const message = [inner["message"], outer["detail"], outer["message"]].find(
    (each) => typeof each === "string" && each,
  );
  return {
    code: String(inner["code"] || inner["type"] || `http_${status}`),
    message:
      typeof message === "string" ? message : `The server answered with status ${status}, without an explanation.`,
  };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
