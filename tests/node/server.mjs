// Where the server is: `make test-node` starts one and tells.
if (!process.env.STINT_URL) throw new Error("STINT_URL is not set: run `make test-node`");
globalThis.AI_SDK_LOG_WARNINGS = false;
export const baseURLs = ["/v1", "/v1/openai/v1"].map((path) => process.env.STINT_URL + path);
export const model = "scripted/demo";
