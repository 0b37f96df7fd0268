// The `@ag-ui/client` package, unmodified: it refuses events that are out of order.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { HttpAgent } from "@ag-ui/client";
import { model } from "./server.mjs";

const url = process.env.STINT_URL;
const weather = {
  name: "get_weather",
  description: "Tells the weather of a city.",
  parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
};
const said = (id, content) => ({ id, role: "user", content });

async function post(path, body) {
  const headers = { "content-type": "application/json" };
  const response = await fetch(url + path, { method: "POST", headers, body: JSON.stringify(body) });
  assert.equal(response.status, 200);
  return response.json();
}

// Returns a client with the session that the last answer named, and the events of all its runs.
async function makeAgent(config = {}) {
  const { agent_id: agentId } = await post("/v1/agents", { agent_config: { model, instructions: "Be brief.", ...config } });
  const seen = { session: undefined, agentId, events: [] };
  const agent = new HttpAgent({
    url: `${url}/v1/agents/${agentId}/ag-ui`,
    threadId: "1",
    initialState: { page: 1 },
    fetch: async (...request) => {
      const response = await fetch(...request);
      seen.session = response.headers.get("stint-session-id");
      return response;
    },
  });
  agent.subscribe({ onEvent: ({ event }) => void seen.events.push(event) });
  return { agent, seen };
}

const finished = ({ events }) => events.findLast((event) => event.type === "RUN_FINISHED");

describe("AG-UI", () => {
  test("two turns with a frontend tool keep the messages of the client", async () => {
    const { agent, seen } = await makeAgent();
    agent.addMessage(said("u1", 'say: I look.\ncall: get_weather {"city": "Rome"}'));
    await agent.runAgent({ tools: [weather], context: [{ description: "page", value: "Orders" }] });

    const [call] = agent.messages.at(-1).toolCalls;
    assert.deepEqual(call.function, { name: "get_weather", arguments: '{"city": "Rome"}' });
    assert.deepEqual(finished(seen).outcome, { type: "success", pendingToolCallIds: [call.id] });
    const { session } = seen;

    agent.addMessage({ id: "t1", role: "tool", toolCallId: call.id, content: "sunny" });
    await agent.runAgent({ tools: [weather] });
    agent.addMessage(said("u2", "say: Bye"));
    await agent.runAgent({ tools: [weather] });

    assert.equal(seen.session, session);
    assert.deepEqual(agent.state, { page: 1 });
    const contents = agent.messages.map(({ role, content }) => [role, content]);
    assert.deepEqual(contents, [
      ["user", 'say: I look.\ncall: get_weather {"city": "Rome"}'],
      ["assistant", "I look."],
      ["tool", "sunny"],
      ["assistant", "get_weather answered: sunny"],
      ["user", "say: Bye"],
      ["assistant", "Bye"],
    ]);
    assert.deepEqual(agent.messages.filter(({ role }) => role !== "assistant").map(({ id }) => id), ["u1", "t1", "u2"]);
  });

  test("a call runs once its interrupt is resolved", async () => {
    const { agent, seen } = await makeAgent({
      toolgroups: [{ name: "builtin::photogen", require_approval: "always" }],
    });
    agent.addMessage(said("u1", 'call: photogen {"query": "a red fox"}'));
    await agent.runAgent();
    const [interrupt] = agent.pendingInterrupts;
    assert.equal(interrupt.reason, "tool_call");

    await assert.rejects(agent.runAgent(), /pending interrupt/);
    await agent.runAgent({
      resume: [{ interruptId: interrupt.id, status: "resolved", payload: { approved: true } }],
    });
    assert.deepEqual(agent.pendingInterrupts, []);
    assert.equal(agent.messages.filter(({ role }) => role === "tool").length, 1);
    assert.deepEqual(finished(seen).outcome, { type: "success" });
  });

  test("reasoning is streamed as messages of its own", async () => {
    const { agent } = await makeAgent();
    agent.addMessage(said("u1", "think: Foxes are red | Red"));
    await agent.runAgent();
    agent.addMessage(said("u2", "say: Bye"));
    await agent.runAgent();

    const shown = agent.messages.map(({ role, content }) => [role, content]);
    assert.deepEqual(shown.slice(0, 3), [
      ["user", "think: Foxes are red | Red"],
      ["reasoning", "Foxes are red"],
      ["assistant", "Red"],
    ]);
  });

  test("a run goes on with what another API has added", async () => {
    const { agent, seen } = await makeAgent();
    agent.addMessage(said("u1", "say: One"));
    await agent.runAgent();
    const turns = `/v1/agents/${seen.agentId}/session/${seen.session}/turn`;
    await post(turns, { messages: [{ role: "user", content: "say: Two" }] });
    await agent.runAgent();

    const contents = agent.messages.map(({ content }) => content);
    assert.deepEqual(contents, ["say: One", "One", "say: Two", "Two"]);
  });

  test("a failure is an event, and a refusal is a status", async () => {
    const { agent, seen } = await makeAgent();
    agent.addMessage(said("u1", "fail: after 1 words\nsay: One two three"));
    await agent.runAgent();
    assert.equal(seen.events.at(-1).type, "RUN_ERROR");

    const lost = new HttpAgent({ url: `${url}/v1/agents/unknown/ag-ui`, threadId: "1" });
    const failures = [];
    const note = ({ error }) => failures.push(error) && { stopPropagation: true };
    lost.subscribe({ onRunFailed: note });
    await lost.runAgent();
    assert.equal(failures[0].status, 404);
    assert.equal(failures[0].payload.error.code, "agent_not_found");
  });
});
