/** The models that answer. */
import { get } from "./api";

/** Return the names of the models that write. */
export async function readModelNames(signal?: AbortSignal): Promise<readonly string[]> {
  const { data } = await get("/v1/models", signal && { signal });
  return data.filter((model) => model.model_type === "llm").map((model) => model.identifier);
}
