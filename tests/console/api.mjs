// The API, to prepare what a test of a page begins with.
export const URL_ = process.env.STINT_URL;
export const MODEL = "scripted/demo";

// Return a new key of a tenant.
export async function createKey(tenant, scopes = ["use", "knowledge:write", "admin"]) {
  const operator = new Api(process.env.STINT_KEY);
  return (await operator.call("POST", "/v1/admin/keys", { tenant, name: tenant, scopes })).key;
}

// Whoever waits for something to become true asks this often, in milliseconds, and no longer than a minute.
const PAUSE = 100;
const LONGEST = 60_000;

export class Api {
  #authorization;

  constructor(key) {
    this.#authorization = `Bearer ${key}`;
  }

  async call(method, path, body, headers = {}) {
    const isForm = body instanceof FormData;
    const type = body && !isForm ? { "content-type": "application/json" } : {};
    const response = await fetch(`${URL_}${path}`, {
      method,
      headers: { authorization: this.#authorization, ...type, ...headers },
      body: isForm ? body : body && JSON.stringify(body),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return text ? JSON.parse(text) : null;
  }

  async upload(name, content) {
    const body = new FormData();
    body.set("purpose", "assistants");
    body.set("file", new File([content], name));
    return this.call("POST", "/v1/files", body);
  }

  // Make a vector store of texts by their file names, and return it when all of them are ingested or have failed.
  async createStore(name, texts) {
    const files = await Promise.all(Object.entries(texts).map((entry) => this.upload(...entry)));
    const { id } = await this.call("POST", "/v1/vector_stores", { name, file_ids: files.map((file) => file.id) });
    const isDone = ({ status }) => status !== "in_progress";
    return until(() => this.call("GET", `/v1/vector_stores/${id}`), isDone);
  }

  async createAgent(settings = {}) {
    const agent_config = { name: "Tested", model: MODEL, instructions: "", ...settings };
    return (await this.call("POST", "/v1/agents", { agent_config })).agent_id;
  }

  async createSession(agent, session_name = "Tested session") {
    return (await this.call("POST", `/v1/agents/${agent}/session`, { session_name })).session_id;
  }

  // Run a turn, and return its id, also if it fails.
  async runTurn(agent, session, content) {
    const path = `/v1/agents/${agent}/session/${session}/turn`;
    const messages = [{ role: "user", content }];
    try {
      return (await this.call("POST", path, { messages })).turn_id;
    } catch (error) {
      const { data } = await this.call("GET", `${path}s?limit=1`);
      if (!data[0]) throw error;
      return data[0].turn_id;
    }
  }

  async respond(body, headers) {
    return this.call("POST", "/v1/responses", { model: MODEL, ...body }, headers);
  }
}

// Ask until the answer is as wanted, and return it.
export async function until(ask, isWanted = Boolean) {
  for (const end = Date.now() + LONGEST; Date.now() < end;) {
    const answer = await ask();
    if (isWanted(answer)) return answer;
    await new Promise((resolve) => setTimeout(resolve, PAUSE));
  }
  throw new Error(`${ask} did not become what the test waits for`);
}
