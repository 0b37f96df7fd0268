// The `llama-stack-client` package, unmodified, as Llama Stack 0.2.12 had it and the newest.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import Newest from "llama-stack-client";
import Oldest from "llama-stack-client-0.2.12";
import { model } from "./server.mjs";

const messages = [{ role: "user", content: "say: Hello there" }];

async function collect(stream) {
  const events = [];
  for await (const event of await stream) events.push(event);
  return events;
}

for (const [version, LlamaStackClient] of Object.entries({ "0.2.12": Oldest, newest: Newest })) {
  describe(`llama-stack-client ${version}`, () => {
    const client = new LlamaStackClient({ baseURL: process.env.STINT_URL, maxRetries: 0 });

    test("a streamed response is read to its end", async () => {
      const events = await collect(client.responses.create({ model, input: "say: Hello there", stream: true }));

      const deltas = events.filter((event) => event.type === "response.output_text.delta");
      assert.equal(deltas.map((event) => event.delta).join(""), "Hello there");
      assert.equal(events.at(-1).type, "response.completed");
    });

    test("a streamed chat completion is read to its end", async () => {
      const chunks = await collect(client.chat.completions.create({ model, messages, stream: true }));

      assert.equal(chunks.map((chunk) => chunk.choices[0]?.delta.content ?? "").join(""), "Hello there");
    });

    test("responses and models are read", async () => {
      const created = await client.responses.create({ model, input: "say: Hello there" });
      const models = await client.models.list();

      assert.equal((await client.responses.retrieve(created.id)).id, created.id);
      assert.ok(models.some((each) => each.identifier === model));
    });
  });
}

test("a turn of an agent is streamed to its end", async () => {
  const client = new Oldest({ baseURL: process.env.STINT_URL, maxRetries: 0 });
  const { agent_id } = await client.agents.create({ agent_config: { model, instructions: "Be brief." } });
  const { session_id } = await client.agents.session.create(agent_id, { session_name: "node" });

  const events = await collect(client.agents.turn.create(agent_id, session_id, { messages, stream: true }));

  const last = events.at(-1).event.payload;
  assert.equal(last.event_type, "turn_complete");
  assert.equal(last.turn.output_message.content, "Hello there");
});
