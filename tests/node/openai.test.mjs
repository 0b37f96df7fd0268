// The `openai` package, unmodified.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import OpenAI from "openai";
import { zodTextFormat } from "openai/helpers/zod";
import { z } from "zod";
import { makeAnimals, question } from "./animals.mjs";
import { baseURLs, model } from "./server.mjs";

const weather = {
  type: "function",
  name: "get_weather",
  description: "Tells the weather of a city.",
  parameters: {
    type: "object",
    properties: { city: { type: "string" } },
    required: ["city"],
    additionalProperties: false,
  },
  strict: true,
};

for (const baseURL of baseURLs) {
  describe(new URL(baseURL).pathname, () => {
    const client = new OpenAI({ baseURL, apiKey: "key" });

    test("a response is created, read back and deleted", async () => {
      const created = await client.responses.create({ model, input: "say: Hello there" });

      assert.equal(created.output_text, "Hello there");
      assert.deepEqual((await client.responses.retrieve(created.id)).output, created.output);
      await client.responses.delete(created.id);
      await assert.rejects(client.responses.retrieve(created.id), OpenAI.NotFoundError);
    });

    test("the stream helper accumulates what the final response says", async () => {
      const stream = client.responses.stream({ model, input: "say: Hello there" });

      let text = "";
      stream.on("response.output_text.delta", (event) => (text += event.delta));
      const final = await stream.finalResponse();

      assert.equal(text, "Hello there");
      assert.equal(final.status, "completed");
      assert.equal(final.output_text, "Hello there");
    });

    test("the stream helper knows every event, of reasoning and refusals too", async () => {
      const stream = client.responses.stream({
        model,
        input: "think: Not this.\nrefuse: I would rather not",
        reasoning: { effort: "low", summary: "auto" },
      });

      const final = await stream.finalResponse();

      assert.deepEqual(final.output.map((item) => item.type), ["reasoning", "message"]);
      assert.equal(final.output[1].content[0].refusal, "I would rather not");
    });

    test("a function call goes round", async () => {
      const asked = client.responses.stream({ model, input: "Please get_weather of Bern", tools: [weather] });
      const first = await asked.finalResponse();
      const [call] = first.output;

      const second = await client.responses.create({
        model,
        previous_response_id: first.id,
        input: [{ type: "function_call_output", call_id: call.call_id, output: "rain" }],
        tools: [weather],
      });

      assert.deepEqual(JSON.parse(call.arguments), { city: "Bern" });
      assert.equal(second.output_text, "get_weather answered: rain");
    });

    test("a zod schema is parsed", async () => {
      const format = zodTextFormat(z.object({ a: z.number(), b: z.number() }), "sum");

      const response = await client.responses.parse({ model, input: "Add 3 and 4", text: { format } });

      assert.deepEqual(response.output_parsed, { a: 3, b: 4 });
    });

    test("a conversation remembers", async () => {
      const conversation = await client.conversations.create({ metadata: { topic: "names" } });
      await client.responses.create({ model, input: "My name is Ada", conversation: conversation.id });

      const second = await client.responses.create({ model, input: "Who am I?", conversation: conversation.id });
      const roles = [];
      for await (const item of client.conversations.items.list(conversation.id, { order: "asc", limit: 2 })) {
        roles.push(item.role);
      }

      assert.equal(second.output_text, "You said: Who am I?");
      assert.deepEqual(roles, ["user", "assistant", "user", "assistant"]);
      assert.equal((await client.conversations.delete(conversation.id)).deleted, true);
    });

    test("a background response is polled, and its stream read again", async () => {
      const queued = await client.responses.create({ model, input: "long: 20 words", background: true });

      let response = queued;
      while (["queued", "in_progress"].includes(response.status)) {
        await new Promise((resolve) => setTimeout(resolve, 100));
        response = await client.responses.retrieve(queued.id);
      }
      const numbers = [];
      for await (const event of await client.responses.retrieve(queued.id, { stream: true, starting_after: 4 })) {
        numbers.push(event.sequence_number);
      }

      assert.equal(queued.status, "queued");
      assert.equal(response.status, "completed");
      assert.equal(numbers[0], 5);
    });

    test("refusals are errors that say what is wrong", async () => {
      const id = `resp_${"0".repeat(32)}`;

      await assert.rejects(client.responses.retrieve(id), (error) => {
        assert.ok(error instanceof OpenAI.NotFoundError);
        assert.match(error.message, new RegExp(id));
        return true;
      });
      await assert.rejects(client.responses.create({ model, input: "Hello", temperature: 3 }), (error) => {
        assert.ok(error instanceof OpenAI.BadRequestError);
        assert.equal(error.param, "temperature");
        return true;
      });
      await assert.rejects(client.responses.stream({ model, input: "fail: after 3 words" }).finalResponse(), /3 words/);
    });

    test("a chat is completed, streamed, and calls a tool", async () => {
      const completion = await client.chat.completions.create({
        model,
        messages: [{ role: "user", content: "say: Hello there" }],
      });
      const runner = client.chat.completions.runTools({
        model,
        stream: true,
        messages: [{ role: "user", content: "Please get_weather of Bern" }],
        tools: [
          {
            type: "function",
            function: {
              name: "get_weather",
              parameters: weather.parameters,
              parse: JSON.parse,
              function: ({ city }) => `rain in ${city}`,
            },
          },
        ],
      });

      assert.equal(completion.choices[0].message.content, "Hello there");
      assert.equal(await runner.finalContent(), "get_weather answered: rain in Bern");
    });

    test("files are uploaded, searched and cited", async () => {
      const { store, ids } = await makeAnimals(baseURL);
      const tools = [{ type: "file_search", vector_store_ids: [store], max_num_results: 1 }];
      const include = ["file_search_call.results"];

      const stream = client.responses.stream({ model, input: question, tools, include });
      const types = [];
      stream.on("event", (event) => types.push(event.type));
      const response = await stream.finalResponse();
      const found = await client.vectorStores.search(store, { query: "Where do penguins live?", max_num_results: 1 });

      const [search, message] = response.output;
      assert.deepEqual(search.queries, ["Where do llamas live?"]);
      assert.deepEqual(search.results.map((result) => result.file_id), [ids["llamas.md"]]);
      const [citation] = message.content[0].annotations;
      assert.deepEqual([citation.type, citation.file_id], ["file_citation", ids["llamas.md"]]);
      assert.ok(citation.index <= response.output_text.length);
      for (const each of ["in_progress", "searching", "completed"]) {
        assert.ok(types.includes(`response.file_search_call.${each}`));
      }
      assert.deepEqual(found.data.map((result) => result.filename), ["penguins.md"]);
      assert.equal((await client.vectorStores.delete(store)).deleted, true);
    });

    test("models are listed", async () => {
      const ids = [];
      for await (const each of client.models.list()) ids.push(each.id);

      assert.ok(ids.includes(model));
    });
  });
}
