// What others write and nobody should: markup, links to scripts, and characters that turn the direction of a text.
import { MODEL, until } from "./api.mjs";
import { startMcp } from "./mcp_server.mjs";

const TAIL = "txt.exe";
// The longest name of a key has 100 characters.
export const NAME = `<img src=https://elsewhere.example/x onerror=alert(1)>\u202E${TAIL}`;
export const TEXT = `<script>alert(2)</script> [a](javascript:alert(3)) ![b](https://elsewhere.example/b.png) ${NAME}`;
export const LINE = `${TEXT} ${"x".repeat(1_000_000)}`;

const ASK = {
  name: "ask",
  description: TEXT,
  parameters: [{ name: NAME, parameter_type: "string", description: TEXT }],
};

// Make one of everything that has a text, and return the ids. `stop` ends the server of tools.
export async function makeHostile(api) {
  const mcp = await startMcp();
  const group = `mcp::${NAME}`;
  const endpoint = { provider_id: "model-context-protocol", mcp_endpoint: { uri: mcp.url } };
  const store = await api.createStore(NAME, { [NAME]: `Llamas. ${LINE}`, [`${NAME}.pdf`]: TEXT });
  await api.call("POST", "/v1/toolgroups", { toolgroup_id: group, ...endpoint });
  await api.call("POST", "/v1/models", { model_id: NAME, provider_model_id: MODEL, metadata: { text: TEXT } });
  const phrases = { phrases: ["llama", TEXT], user_message: TEXT };
  await api.call("POST", "/v1/shields", { shield_id: NAME, provider_id: "deny-list", params: phrases });
  const made = { group, store, stop: mcp.stop, user: NAME };
  made.key = await api.call("POST", "/v1/admin/keys", { name: NAME, subject: NAME, budgets: { dollars_per_month: 1 } });
  await makeTurns(api, made);
  await makeResponses(api, made, mcp);
  return made;
}

async function makeTurns(api, made) {
  const config = { name: NAME, instructions: TEXT, client_tools: [ASK] };
  const toolgroups = [{ name: "builtin::rag", args: { vector_db_ids: [made.store.id] } }];
  made.agent = await api.createAgent({ ...config, toolgroups, output_shields: [NAME] });
  made.session = await api.createSession(made.agent, NAME);
  made.asking = await api.createSession(made.agent, NAME);
  made.turn = await api.runTurn(made.agent, made.session, LINE);
}

async function makeResponses(api, made, mcp) {
  const search = { type: "file_search", vector_store_ids: [made.store.id] };
  const server = { type: "mcp", server_label: "hostile", server_url: mcp.url, require_approval: "always" };
  made.conversation = (await api.call("POST", "/v1/conversations", { metadata: { title: TEXT } })).id;
  const { id } = await api.respond({ input: `Use file search for "Llamas" ${TEXT}`, tools: [search], user: NAME });
  made.response = id;
  const call = `call: book {"title": ${JSON.stringify(TEXT)}, "size": "large"}`;
  made.approval = (await api.respond({ input: call, tools: [server], conversation: made.conversation })).id;
  const failing = { input: `say: ${TEXT}\nfail: after 3 words`, background: true, metadata: { title: NAME } };
  made.failed = (await api.respond(failing)).id;
  await until(
    () => api.call("GET", `/v1/responses/${made.failed}`),
    ({ status }) => status === "failed",
  );
  const chat = { model: MODEL, messages: [{ role: "user", content: TEXT }], store: true, metadata: { title: NAME } };
  made.chat = (await api.call("POST", "/v1/chat/completions", chat)).id;
}

// Return the runs of a list, as if there were some that have lasted ten seconds.
export function runsOf({ key }) {
  const began_at = Math.floor(Date.now() / 1000) - 30;
  const run = { kind: "turn", id: NAME, agent_id: NAME, session_id: NAME, model: NAME, key_id: key.id, began_at };
  return { object: "list", data: [{ ...run, until: began_at + 90 }], has_more: false };
}

// In the page: return what others have put into it that is more than text.
export function findIntruders() {
  const wrong =
    "main script, iframe, object, embed, base, [onerror], [onload], a[href^='javascript' i], main form[action]";
  const images = [...document.images].filter(({ src }) => !/^(data|blob):/.test(src));
  return [...document.querySelectorAll(wrong), ...images].map((element) => element.outerHTML.slice(0, 200));
}

// In the page: return the words that follow a character which turns their direction, if they are not of the same text.
export function findTurned(tail) {
  const isBlock = (element) => !["inline", "contents"].includes(getComputedStyle(element).display);
  const isIsolated = (element) => isBlock(element) || /isolate|plaintext/.test(getComputedStyle(element).unicodeBidi);
  const ownerOf = (node, isOwner) => {
    let element = node.parentElement;
    while (!isOwner(element)) element = element.parentElement;
    return element;
  };
  const turned = [];
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = texts.nextNode(); node; node = texts.nextNode()) {
    const place = node.data.lastIndexOf("\u202E");
    const owner = place < 0 ? null : ownerOf(node, isIsolated);
    if (!owner || owner.closest("pre, textarea, option") || !owner.checkVisibility()) continue;
    let rest = node.data.slice(place + 1);
    const later = document.createTreeWalker(owner, NodeFilter.SHOW_TEXT);
    later.currentNode = node;
    for (let next = later.nextNode(); next; next = later.nextNode()) {
      if (ownerOf(next, isBlock) !== ownerOf(node, isBlock)) break;
      rest += next.data;
    }
    if (/[a-wyz0-9]/i.test(rest.replace(tail, "")))
      turned.push(`${owner.outerHTML.slice(0, 120)} turns ${rest.slice(0, 80)}`);
  }
  return turned;
}

export { TAIL };
