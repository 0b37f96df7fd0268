// The AI SDK, unmodified, with its provider for OpenAI and the one for Open Responses.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { createOpenResponses } from "@ai-sdk/open-responses";
import { createOpenAI } from "@ai-sdk/openai";
import { APICallError, generateObject, generateText, Output, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";
import { makeAnimals, question } from "./animals.mjs";
import { baseURLs, model as name } from "./server.mjs";

const weather = tool({
  description: "Tells the weather of a city.",
  inputSchema: z.object({ city: z.string() }),
  execute: async ({ city }) => `rain in ${city}`,
});
const sum = z.object({ a: z.number(), b: z.number() });
const providers = {
  "@ai-sdk/openai": (baseURL) => createOpenAI({ baseURL, apiKey: "key" }).responses(name),
  "@ai-sdk/open-responses": (baseURL) =>
    createOpenResponses({ name: "stint", url: `${baseURL}/responses`, apiKey: "key" })(name),
};

for (const [provider, create] of Object.entries(providers)) {
  for (const baseURL of baseURLs) {
    describe(`${provider} at ${new URL(baseURL).pathname}`, () => {
      const model = create(baseURL);

      test("text is generated", async () => {
        const { text, finishReason, usage } = await generateText({
          model,
          system: "Answer briefly.",
          prompt: "say: Hello there",
        });

        assert.equal(text, "Hello there");
        assert.equal(finishReason, "stop");
        assert.ok(usage.inputTokens > 0 && usage.outputTokens > 0);
      });

      test("text is streamed", async () => {
        const result = streamText({ model, prompt: "say: Hello there" });

        const pieces = [];
        for await (const piece of result.textStream) pieces.push(piece);

        assert.deepEqual(pieces, ["Hello ", "there"]);
        assert.equal(await result.finishReason, "stop");
      });

      test("a tool is called until there is an answer", async () => {
        const { text, steps } = await generateText({
          model,
          tools: { get_weather: weather },
          stopWhen: stepCountIs(3),
          prompt: "Please get_weather of Bern",
        });

        assert.equal(text, "get_weather answered: rain in Bern");
        assert.equal(steps.length, 2);
      });

      test("a tool is called while streaming", async () => {
        const result = streamText({
          model,
          tools: { get_weather: weather },
          stopWhen: stepCountIs(3),
          prompt: "Please get_weather of Bern",
        });

        assert.equal(await result.text, "get_weather answered: rain in Bern");
        const steps = await result.steps;
        assert.deepEqual(steps[0].toolCalls.map((call) => call.input), [{ city: "Bern" }]);
      });

      test("an object is generated", async () => {
        const { output } = await generateText({ model, output: Output.object({ schema: sum }), prompt: "Add 3 and 4" });
        const { object } = await generateObject({ model, schema: sum, prompt: "Add 5 and 6" });

        assert.deepEqual(output, { a: 3, b: 4 });
        assert.deepEqual(object, { a: 5, b: 6 });
      });

      test("reasoning is told", async () => {
        const result = await generateText({
          model,
          prompt: "think: Seven, surely. | Seven",
          providerOptions: { openai: { reasoningEffort: "low", reasoningSummary: "auto", forceReasoning: true } },
          reasoning: "low",
        });

        assert.equal(result.text, "Seven");
        assert.match(result.reasoningText, /Seven, surely/);
      });

      test("a refusal shows its message", async () => {
        await assert.rejects(generateText({ model, prompt: "Hello", temperature: 3, maxRetries: 0 }), (error) => {
          assert.ok(APICallError.isInstance(error));
          assert.equal(error.statusCode, 400);
          assert.match(error.message, /temperature/);
          return true;
        });
      });

      test("a failure in the middle of a stream is an error part", async () => {
        const parts = [];
        const result = streamText({ model, prompt: "fail: after 3 words", onError: () => {}, maxRetries: 0 });
        for await (const part of result.fullStream) parts.push(part);

        assert.ok(parts.some((part) => part.type === "error"));
      });
    });
  }
}

for (const baseURL of baseURLs) {
  test(`a response goes on from another at ${new URL(baseURL).pathname}`, async () => {
    const model = providers["@ai-sdk/openai"](baseURL);
    const first = await generateText({ model, prompt: "My name is Ada" });
    const previousResponseId = first.finalStep.providerMetadata.openai.responseId;

    const { text } = await generateText({
      model,
      prompt: "Who am I?",
      providerOptions: { openai: { previousResponseId } },
    });

    assert.equal(text, "You said: Who am I?");
  });
}

for (const baseURL of baseURLs) {
  test(`files are searched and cited at ${new URL(baseURL).pathname}`, async () => {
    const { store, ids } = await makeAnimals(baseURL);
    const openai = createOpenAI({ baseURL, apiKey: "key" });
    const asked = {
      model: openai.responses(name),
      prompt: question,
      tools: { file_search: openai.tools.fileSearch({ vectorStoreIds: [store], maxNumResults: 1 }) },
    };
    const include = { openai: { include: ["file_search_call.results"] } };

    const { text, sources } = await generateText(asked);
    const { toolResults } = await generateText({ ...asked, providerOptions: include });
    const streamed = streamText(asked);
    const pieces = [];
    for await (const part of streamed.fullStream) if (part.type === "source") pieces.push(part);

    assert.match(text, /Andes/);
    assert.deepEqual(sources.map((source) => source.providerMetadata.openai.fileId), [ids["llamas.md"]]);
    assert.deepEqual(sources.map((source) => source.filename), ["llamas.md"]);
    assert.deepEqual(toolResults[0].output.results.map((result) => result.filename), ["llamas.md"]);
    assert.deepEqual(pieces.map((source) => source.filename), ["llamas.md"]);
  });
}
