// Talk to an agent, and make responses.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import {
  close,
  DESKTOP,
  KEY,
  open,
  PHONE,
  shot,
  URL_,
  violations,
} from "./browser.mjs";

const SIZES = { desktop: DESKTOP, phone: PHONE };
const INSIDE = { timeout: 20_000 };
const MODEL = "scripted/demo";
const WEATHER = {
  name: "get_weather",
  description: "Returns the weather",
  parameters: [
    { name: "city", parameter_type: "string", description: "The city" },
    {
      name: "days",
      parameter_type: "integer",
      description: "For so many days",
      required: false,
    },
    {
      name: "options",
      parameter_type: "object",
      description: "More",
      required: false,
    },
  ],
  metadata: {
    output_schema: {
      type: "object",
      properties: {
        sky: { enum: ["clear", "grey"] },
        degrees: { type: "number" },
      },
      required: ["sky", "degrees"],
    },
  },
};
const ASK = {
  name: "ask",
  description: "Asks",
  parameters: [
    { name: "question", parameter_type: "string", description: "The question" },
  ],
};

let mcp;

before(async () => {
  mcp = createServer(answerMcp).listen(0, "127.0.0.1");
  await new Promise((resolve) => mcp.once("listening", resolve));
});

after(async () => {
  mcp.closeAllConnections();
  mcp.close();
  await close();
});

// An MCP server with one tool, which adds.
async function answerMcp(request, response) {
  let text = "";
  for await (const piece of request) text += piece;
  const { id, method, params } = text ? JSON.parse(text) : {};
  if (request.method !== "POST" || id === undefined)
    return response.writeHead(request.method === "POST" ? 202 : 405).end();
  const numbers = { a: { type: "integer" }, b: { type: "integer" } };
  const schema = { type: "object", properties: numbers, required: ["a", "b"] };
  const results = {
    initialize: () => ({
      protocolVersion: params.protocolVersion,
      capabilities: { tools: {} },
      serverInfo: { name: "sums", version: "1" },
    }),
    "tools/list": () => ({
      tools: [{ name: "add", description: "Adds", inputSchema: schema }],
    }),
    "tools/call": () => ({
      content: [
        { type: "text", text: `${params.arguments.a + params.arguments.b}` },
      ],
    }),
  };
  const result = results[method]?.() ?? {};
  response.writeHead(200, { "content-type": "application/json" });
  response.end(JSON.stringify({ jsonrpc: "2.0", id, result }));
}

async function call(method, path, body) {
  const isForm = body instanceof FormData;
  const response = await fetch(`${URL_}/v1${path}`, {
    method,
    headers: {
      authorization: `Bearer ${KEY}`,
      ...(body && !isForm && { "content-type": "application/json" }),
    },
    body: isForm ? body : body && JSON.stringify(body),
  });
  const text = await response.text();
  assert.ok(response.ok, `${method} ${path}: ${text}`);
  return text ? JSON.parse(text) : null;
}

async function makeAgent(settings = {}) {
  const agent_config = {
    name: "Tested",
    model: MODEL,
    instructions: "",
    ...settings,
  };
  return (await call("POST", "/agents", { agent_config })).agent_id;
}

// Make an agent with a session, and return the path of its page.
async function makeSession(settings) {
  const agent = await makeAgent(settings);
  const { session_id } = await call("POST", `/agents/${agent}/session`, {
    session_name: "Tested session",
  });
  return `/console/agents/${agent}/sessions/${session_id}`;
}

const messageOf = (page) => page.getByLabel("Message", { exact: true });

async function send(page, text) {
  await messageOf(page).fill(text, INSIDE);
  await page.getByRole("button", { name: "Send", exact: true }).click();
}

const answers = (page) => page.locator(".run-answer");

async function hasOverflow(page) {
  return page.evaluate(
    () =>
      document.documentElement.scrollWidth >
      document.documentElement.clientWidth,
  );
}

async function check(page, problems, name) {
  assert.deepEqual(await violations(page), []);
  assert.equal(await hasOverflow(page), false);
  if (name) await shot(page, name);
  assert.deepEqual(problems, []);
}

for (const [size, viewport] of Object.entries(SIZES)) {
  const scheme = size === "phone" ? "dark" : "light";

  test(`agents are listed with the newest first, found by name and id, and deleted, ${size}`, async () => {
    const first = await makeAgent({ name: `Older of ${size}` });
    await makeAgent({ name: `Newer of ${size}` });
    const {
      page,
      problems,
      close: end,
    } = await open({ viewport, scheme, path: "/console/agents" });
    const rows = page.locator("tbody tr");
    await page.getByLabel("Find by name or id").fill(`of ${size}`, INSIDE);
    await page.waitForFunction(
      () => document.querySelectorAll("tbody tr").length === 2,
    );
    assert.match(await rows.first().innerText(), /Newer/);
    await page.getByLabel("Find by name or id").fill(first);
    await page.waitForFunction(
      () => document.querySelectorAll("tbody tr").length === 1,
    );
    assert.match(await rows.first().innerText(), /Older/);
    await check(page, problems, `agents-${size}`);

    await page.getByRole("button", { name: `Delete Older of ${size}` }).click();
    await page
      .getByRole("dialog")
      .getByRole("button", { name: "Delete" })
      .click();
    await page.getByText("No agent has this name or id").waitFor(INSIDE);
    await end();
  });

  test(`an agent is made in a form with its JSON beside it, ${size}`, async () => {
    const {
      page,
      problems,
      close: end,
    } = await open({ viewport, scheme, path: "/console/agents/new" });
    const json = page.getByLabel("JSON of the agent");
    await page.getByLabel("Name", { exact: true }).fill("Formed", INSIDE);
    await page.getByLabel("builtin::rag", { exact: true }).check();
    await page
      .getByLabel("Arguments of builtin::rag")
      .fill('{"vector_db_ids": ["none"]}');
    const settings = JSON.parse(await json.inputValue());
    assert.equal(settings.name, "Formed");
    assert.deepEqual(settings.toolgroups, [
      { name: "builtin::rag", args: { vector_db_ids: ["none"] } },
    ]);
    await json.fill(
      JSON.stringify({
        ...settings,
        toolgroups: [],
        instructions: "Be kind.",
        max_infer_iters: 5000,
      }),
    );
    assert.equal(
      await page.getByLabel("Instructions").inputValue(),
      "Be kind.",
    );
    assert.equal(
      await page.getByLabel("builtin::rag", { exact: true }).isChecked(),
      false,
    );
    await json.fill("{");
    await page.getByText(/This is not JSON/).waitFor();
    await json.fill(JSON.stringify({ ...settings, max_infer_iters: 5000 }));

    await page.getByRole("button", { name: "Make the agent" }).click();
    const problem = page.locator(".field", {
      has: page.getByLabel("Most model calls in a turn"),
    });
    await problem.locator(".field-error").waitFor(INSIDE);
    await check(page, problems, `agent-form-${size}`);
    await page.getByLabel("Most model calls in a turn").fill("5");
    await page.getByRole("button", { name: "Make the agent" }).click();
    await page.getByRole("heading", { name: "Formed" }).waitFor(INSIDE);

    await page.getByRole("link", { name: "Copy this agent" }).click();
    await page.waitForFunction(
      () => document.querySelector("input")?.value === "Formed (copy)",
    );
    await end();
  });

  test(`text, calls and results are shown where they happen, ${size}`, async () => {
    const path = await makeSession({ toolgroups: ["builtin::photogen"] });
    const {
      page,
      problems,
      close: end,
    } = await open({ viewport, scheme, path });
    await send(page, "Hello **you**");
    await answers(page).getByText("tokens").waitFor(INSIDE);
    assert.equal(await answers(page).locator("strong").innerText(), "you");
    await send(page, 'call: photogen {"query": "a fox"}');
    await answers(page).last().locator("img").waitFor(INSIDE);
    await answers(page).last().getByText("tokens").waitFor(INSIDE);
    await answers(page).last().locator("summary").click();
    await page
      .getByRole("group", { name: "Arguments" })
      .getByText("a fox")
      .waitFor();
    await page.getByRole("group", { name: "Result" }).waitFor();
    await check(page, problems, `session-${size}`);
    await end();
  });

  test(`a turn that waits for its client shows a form per call, and resumes, ${size}`, async () => {
    const path = await makeSession({ client_tools: [WEATHER, ASK] });
    const {
      page,
      problems,
      close: end,
    } = await open({ viewport, scheme, path });
    await send(
      page,
      'call: get_weather {"city": "Oslo", "options": {"a": [1]}}\ncall: ask {"question": "Why?"}',
    );
    const form = page.getByRole("form", { name: "What the run waits for" });
    await form.getByText("2 calls wait for you").waitFor(INSIDE);
    assert.equal(await form.getByLabel("city (required)").inputValue(), "Oslo");
    assert.equal(
      await form.getByLabel("question (required)").inputValue(),
      "Why?",
    );
    await form.getByRole("button", { name: "Send and continue" }).click();
    assert.equal(await form.locator(".field-error").count(), 3);
    await check(page, problems, `waiting-${size}`);
    await form.getByLabel("sky (required)").selectOption("grey");
    await form.getByLabel("degrees (required)").fill("warm");
    await form.getByLabel("Result of ask").fill("Because.");
    // What was typed outlives a reload.
    await page.reload();
    assert.equal(
      await form.getByLabel("Result of ask").inputValue(INSIDE),
      "Because.",
    );
    await form.getByRole("button", { name: "Send and continue" }).click();
    await form.getByText("This is not a number.").waitFor();
    await form.getByLabel("degrees (required)").fill("21.5");
    await form.getByRole("button", { name: "Send and continue" }).click();
    await answers(page)
      .getByText('get_weather answered: {"sky":"grey","degrees":21.5}')
      .waitFor(INSIDE);
    await answers(page).getByText("ask answered: Because.").waitFor();
    await end();
  });

  test(`documents and images come by button, drop and paste, ${size}`, async () => {
    const path = await makeSession();
    const {
      page,
      problems,
      close: end,
    } = await open({ viewport, scheme, path });
    const dot =
      "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    await page.getByLabel("Files", { exact: true }).setInputFiles(
      {
        name: "dot.png",
        mimeType: "image/png",
        buffer: Buffer.from(dot, "base64"),
      },
      INSIDE,
    );
    await page.evaluate(() => {
      const dropped = new DataTransfer();
      dropped.items.add(new File(["The answer is 42."], "dropped.md"));
      const event = { dataTransfer: dropped, bubbles: true, cancelable: true };
      window.dispatchEvent(new DragEvent("dragover", event));
      window.dispatchEvent(new DragEvent("drop", event));
    });
    await page.getByText("dropped.md").waitFor();
    await page.evaluate(() => {
      const clipboardData = new DataTransfer();
      clipboardData.items.add(
        new File(["pasted"], "pasted.txt", { type: "text/plain" }),
      );
      document.querySelector("textarea").dispatchEvent(
        new ClipboardEvent("paste", {
          clipboardData,
          bubbles: true,
          cancelable: true,
        }),
      );
    });
    await page.getByText("pasted.txt").waitFor();
    await page.getByRole("button", { name: "Remove pasted.txt" }).click();
    await check(page, problems, `files-${size}`);
    const sent = page.waitForRequest((request) =>
      request.url().endsWith("/turn"),
    );
    await send(page, "What is this?");
    const body = (await sent).postDataJSON();
    assert.equal(body.messages[0].content[1].type, "image");
    assert.equal(body.documents.length, 1);
    await answers(page).getByText("with 1 image").waitFor(INSIDE);
    await page.locator(".sent img").waitFor();
    await end();
  });

  test(`a turn is cancelled and sent again, and a failed one says why, ${size}`, async () => {
    const path = await makeSession();
    const {
      page,
      problems,
      close: end,
    } = await open({ viewport, scheme, path });
    await send(page, "long: 2000 words");
    await answers(page).getByText("word5 ").waitFor(INSIDE);
    await page.getByRole("button", { name: "Stop" }).click();
    await answers(page).getByText("cancelled").waitFor(INSIDE);
    assert.match(await answers(page).first().innerText(), /word5/);
    await send(page, "fail: after 3 words");
    await answers(page)
      .last()
      .getByText("failed after 3 words")
      .waitFor(INSIDE);
    await check(page, problems, `failed-${size}`);
    await answers(page)
      .last()
      .getByRole("button", { name: "Send again" })
      .click();
    await page.waitForFunction(
      () => document.querySelectorAll(".run").length === 3,
    );
    await answers(page)
      .last()
      .getByText("failed after 3 words")
      .waitFor(INSIDE);
    await end();
  });

  test(`a message in a busy session is refused, waits, interrupts or is added, ${size}`, async () => {
    const path = await makeSession();
    const {
      page,
      problems,
      close: end,
    } = await open({ viewport, scheme, path });
    const busy = page.getByLabel("While another one runs");
    await send(page, "long: 300 words");
    await answers(page).getByText("word5 ").waitFor(INSIDE);
    await busy.selectOption("reject");
    await send(page, "refused");
    await page.getByText(/is running turn/).waitFor(INSIDE);
    assert.equal(await messageOf(page).inputValue(), "refused");
    await check(page, problems, `busy-${size}`);
    await busy.selectOption("enqueue");
    await send(page, "in line");
    await page.getByText("Sent. Waiting for its turn").waitFor();
    await answers(page).getByText("You said: in line").waitFor(INSIDE);
    await send(page, "long: 2000 words");
    await answers(page).last().getByText("word5 ").waitFor(INSIDE);
    await busy.selectOption("interrupt");
    await send(page, "now");
    await answers(page).getByText("You said: now").waitFor(INSIDE);
    assert.equal(await answers(page).nth(2).getByText("cancelled").count(), 1);
    // A turn takes messages before its second call of the model.
    await send(page, "long: 100 words");
    await answers(page).last().getByText("word5 ").waitFor(INSIDE);
    await busy.selectOption("merge");
    await send(page, "added");
    await answers(page).last().getByText("You said: added").waitFor(INSIDE);
    await end();
  });

  test(`a reload in the middle of a turn goes on where the stream was, ${size}`, async () => {
    const path = await makeSession();
    const { page, close: end } = await open({ viewport, scheme, path });
    await send(page, "long: 200 words");
    await answers(page).getByText("word20 ").waitFor(INSIDE);
    await messageOf(page).fill("a draft");
    await page.reload();
    await answers(page).getByText("word20 ").waitFor(INSIDE);
    assert.equal(await messageOf(page).inputValue(), "a draft");
    await answers(page).getByText("tokens").waitFor(INSIDE);
    const words = (await answers(page).innerText()).match(/word\d+/g);
    assert.deepEqual(
      words,
      Array.from({ length: 200 }, (_, index) => `word${index + 1}`),
    );
    await end();
  });

  test(`responses follow each other, with reasoning, search and approvals, ${size}`, async () => {
    const form = new FormData();
    form.set("purpose", "assistants");
    form.set("file", new File(["Llamas live in the Andes."], "llamas <b>.md"));
    const file = await call("POST", "/files", form);
    const store = await call("POST", "/vector_stores", {
      name: `Animals ${size}`,
      file_ids: [file.id],
    });
    for (let status = ""; status !== "completed";) {
      await new Promise((resolve) => setTimeout(resolve, 300));
      ({ status } = await call("GET", `/vector_stores/${store.id}`));
    }
    const {
      page,
      problems,
      close: end,
    } = await open({ viewport, scheme, path: "/console/responses/new" });
    await page.getByLabel(`Animals ${size}`).check(INSIDE);
    await page.getByLabel("Reasoning").selectOption("low");
    await page.getByLabel("Label").fill("sums");
    await page
      .getByLabel("Address")
      .fill(`http://127.0.0.1:${mcp.address().port}/mcp`);
    await page.getByRole("button", { name: "Add the server" }).click();
    await check(page, problems, `response-settings-${size}`);
    await page.getByText("Settings", { exact: true }).click();

    await send(page, 'Use file search for "Where do llamas live?"');
    await answers(page).getByText("tokens", { exact: false }).waitFor(INSIDE);
    assert.equal(
      await answers(page).getByText("Search in documents").count(),
      1,
    );
    assert.match(
      await answers(page).locator(".sources").innerText(),
      /llamas <b>\.md/,
    );
    await send(page, "think: I ponder | My answer");
    await answers(page).last().getByText("tokens").waitFor(INSIDE);
    await answers(page).last().getByText("I ponder").waitFor();
    for (const [decision, words] of [
      ["Approve", "add answered: 5"],
      ["Deny", "did not approve"],
    ]) {
      await send(page, 'call: add {"a": 2, "b": 3}');
      await page.getByLabel(decision, { exact: true }).check(INSIDE);
      if (decision === "Approve")
        await check(page, problems, `approval-${size}`);
      await page.getByRole("button", { name: "Send the decision" }).click();
      await answers(page).last().getByText(words).waitFor(INSIDE);
      await answers(page).last().getByText("tokens").waitFor(INSIDE);
    }
    await send(page, "long: 200 words");
    await answers(page).last().getByText("word20 ").waitFor(INSIDE);
    await page.reload();
    await answers(page).getByText("word20 ").waitFor(INSIDE);
    await answers(page).getByText("tokens").waitFor(INSIDE);
    const words = (await answers(page).innerText()).match(/word\d+/g);
    assert.equal(words.length, 200);
    await page
      .getByRole("button", { name: "Show the response before" })
      .click();
    await page.waitForFunction(
      () => document.querySelectorAll(".run").length === 2,
    );
    assert.deepEqual(problems, []);
    await end();
  });

  test(`responses run in the background, in a conversation, and call functions, ${size}`, async () => {
    const {
      page,
      problems,
      close: end,
    } = await open({ viewport, scheme, path: "/console/responses/new" });
    const parameters = {
      type: "object",
      properties: { city: { type: "string", enum: ["Oslo", "Rome"] } },
      required: ["city"],
    };
    await page
      .getByLabel("All tools")
      .fill(
        JSON.stringify([{ type: "function", name: "weather", parameters }]),
        INSIDE,
      );
    await page.getByLabel("Conversation", { exact: true }).selectOption("new");
    await send(page, 'call: weather {"city": "Oslo"}');
    const form = page.getByRole("form", { name: "What the run waits for" });
    assert.equal(
      await form.getByLabel("city (required)").inputValue(INSIDE),
      "Oslo",
    );
    await form.getByLabel("Result of weather").fill("Sunny");
    await form.getByRole("button", { name: "Send and continue" }).click();
    await answers(page)
      .last()
      .getByText("weather answered: Sunny")
      .waitFor(INSIDE);
    await answers(page).last().getByText("tokens").waitFor(INSIDE);
    const settings = JSON.parse(
      await page.getByLabel("JSON of the request").inputValue(),
    );
    assert.match(settings.conversation, /^conv_/);
    await page.getByLabel("In the background").check();
    await send(page, "in the background");
    await answers(page)
      .last()
      .getByText("You said: in the background")
      .waitFor(INSIDE);
    await answers(page).last().getByText("tokens").waitFor(INSIDE);
    await answers(page)
      .last()
      .getByRole("button", { name: "JSON and code" })
      .click();
    await answers(page).last().getByText('"background": true').waitFor();
    assert.deepEqual(problems, []);
    await end();
  });
}

test("a shield's violation is shown in its place", async () => {
  await call("POST", "/shields", {
    shield_id: "secrets",
    provider_id: "deny-list",
    params: {
      phrases: ["launch code"],
      user_message: "I do not talk about that.",
    },
  });
  const path = await makeSession({ output_shields: ["secrets"] });
  const { page, close: end } = await open({ path });
  await send(page, "say: The launch code is 0000.");
  await answers(page).getByText("blocked").waitFor(INSIDE);
  await answers(page).getByText("I do not talk about that.").first().waitFor();
  await end();
});

test("nothing typed is lost when the key expires, there are too many requests, or the server is gone", async () => {
  const path = await makeSession();
  for (const [fulfil, words] of [
    [
      (route) =>
        route.fulfill({
          status: 429,
          headers: { "retry-after": "30" },
          json: { error: { message: "Slow down." } },
        }),
      /Try again in (30|29) s/,
    ],
    [(route) => route.abort(), "The server does not answer."],
    [
      (route) =>
        route.fulfill({
          status: 401,
          json: { error: { message: "Expired." } },
        }),
      "Sign in again",
    ],
  ]) {
    const { page, close: end } = await open({ path });
    await messageOf(page).waitFor(INSIDE);
    await page.route("**/turn", fulfil);
    await send(page, "Do not lose this");
    await page.getByText(words).waitFor(INSIDE);
    await page.unroute("**/turn");
    if (words === "Sign in again") {
      await page.getByLabel("API key").fill(KEY);
      await page.keyboard.press("Enter");
      await page.getByRole("dialog").waitFor({ state: "hidden" });
    }
    const box = await messageOf(page).elementHandle();
    await page.waitForFunction((element) => element.value === "Do not lose this", box);
    await page.getByRole("button", { name: "Send", exact: true }).click();
    await answers(page)
      .last()
      .getByText("You said: Do not lose this")
      .waitFor(INSIDE);
    await end();
  }
});

test("a message that did not arrive waits beside another one that was begun", async () => {
  const { page, close: end } = await open({ path: await makeSession() });
  await messageOf(page).waitFor(INSIDE);
  let refuse;
  await page.route("**/turn", (route) => (refuse = () => route.abort()));
  await send(page, "First");
  await messageOf(page).fill("Second");
  await page.waitForFunction(
    () => document.querySelectorAll(".run").length === 1,
  );
  refuse();
  await page.getByText("The server does not answer.").waitFor(INSIDE);
  assert.equal(await messageOf(page).inputValue(), "Second");
  await page.unroute("**/turn");
  await page.getByRole("button", { name: "Try again" }).click();
  await answers(page).getByText("You said: First").waitFor(INSIDE);
  assert.equal(await messageOf(page).inputValue(), "Second");
  await end();
});

test("a stream that breaks goes on, and one that stays broken can be joined again", async () => {
  const path = await makeSession();
  const { page, close: end } = await open({ path });
  await messageOf(page).waitFor(INSIDE);
  let isDown = true;
  await page.route("**/turn", async (route) => {
    const response = await route.fetch();
    const cut =
      (await response.text()).split("\n\n").slice(0, 4).join("\n\n") + "\n\n";
    await route.fulfill({ response, body: cut });
  });
  await page.route("**/events*", (route) =>
    isDown
      ? route.fulfill({ status: 503, json: { error: { message: "Down." } } })
      : route.continue(),
  );
  await send(page, "Hello again");
  await answers(page).getByText("Down.").waitFor(INSIDE);
  isDown = false;
  await answers(page).getByRole("button", { name: "Try again" }).click();
  await answers(page).getByText("You said: Hello again").waitFor(INSIDE);
  await answers(page).getByText("tokens").waitFor(INSIDE);
  assert.equal(
    (await answers(page).innerText()).match(/You said: Hello again/g).length,
    1,
  );
  await end();
});

// Let the page get the events of a turn from a function in the page itself. It is `script`, which gets how to emit one.
async function openScripted(script, values) {
  const opened = await open({ path: await makeSession() });
  const { page } = opened;
  await messageOf(page).waitFor(INSIDE);
  await page.evaluate(() => {
    const original = window.fetch;
    const encoder = new TextEncoder();
    const start = async (controller) => {
      let number = 0;
      const emit = (payload) => {
        const data = JSON.stringify({ event: { payload } });
        controller.enqueue(
          encoder.encode(`id: ${number++}\ndata: ${data}\n\n`),
        );
      };
      emit({ event_type: "turn_start", turn_id: "t" });
      await window.script(emit);
      const output_message = { role: "assistant", content: "" };
      const turn = { turn_id: "t", session_id: "s", input_messages: [] };
      const rest = { steps: [], output_message, status: "completed" };
      const started_at = new Date().toISOString();
      emit({
        event_type: "turn_complete",
        turn: { ...turn, ...rest, started_at },
      });
      controller.close();
    };
    window.stepComplete = (step_id, details) => ({
      event_type: "step_complete",
      step_type: details.step_type,
      step_id,
      step_details: {
        turn_id: "t",
        step_id,
        started_at: new Date().toISOString(),
        ...details,
      },
    });
    window.fetch = (url, options) =>
      String(url).endsWith("/turn")
        ? Promise.resolve(
            new Response(new ReadableStream({ start }), {
              headers: { "content-type": "text/event-stream" },
            }),
          )
        : original(url, options);
  });
  await page.evaluate(script, values);
  return opened;
}

const countElements = (page) =>
  page.evaluate(() => document.querySelectorAll("*").length);

// Steps with a call each: 10,000 of them at once.
function sendSteps(hostile) {
  window.script = async (emit) => {
    for (let index = 0; index < 10_000; index += 1) {
      const isLast = index === 9999;
      const content = isLast ? hostile + "a".repeat(1_000_000) : hostile;
      const call_id = `c${index}`;
      const call = { call_id, tool_name: hostile, arguments: { hostile } };
      const result = { call_id, tool_name: hostile, content };
      const model_response = { role: "assistant", content, tool_calls: [] };
      const details =
        index % 2
          ? {
              step_type: "tool_execution",
              tool_calls: [call],
              tool_responses: [result],
            }
          : { step_type: "inference", model_response };
      emit(window.stepComplete(`s${index}`, details));
    }
  };
}

test("10,000 steps leave a bounded number of elements, and hostile texts are texts", async () => {
  const hostile =
    "<img src=x onerror=alert(1)> [x](javascript:alert(1)) ![y](https://elsewhere.example/y.png) \u202egnp.exe";
  const { page, problems, close: end } = await openScripted(sendSteps, hostile);
  await send(page, "go");
  const earlier = page.getByRole("button", { name: /Show earlier steps/ });
  await earlier.waitFor({ timeout: 60_000 });
  await answers(page).locator(".run-foot").waitFor({ timeout: 60_000 });
  assert.ok((await countElements(page)) < 2000, await countElements(page));
  await page.locator("summary").last().click();
  await page
    .getByRole("button", { name: /Show more of 1,000,\d+ characters/ })
    .waitFor();
  assert.equal(
    await page
      .locator(".parts img, .parts script, .parts a[href^='javascript']")
      .count(),
    0,
  );
  assert.equal(await hasOverflow(page), false);
  await earlier.click();
  await page.getByRole("button", { name: /Show later steps/ }).waitFor();
  assert.ok((await countElements(page)) < 2000);
  assert.deepEqual(problems, []);
  await end();
});

// 4,000 words, ten in each of 10 ms.
function sendWords() {
  window.script = async (emit) => {
    for (let index = 0; index < 4000; index += 1) {
      const text = `w${index}${index % 200 === 199 ? "\n\n" : " "}`;
      const delta = { type: "text", text };
      emit({
        event_type: "step_progress",
        step_type: "inference",
        step_id: "s",
        delta,
      });
      if (index % 10 === 9) await new Promise((next) => setTimeout(next, 10));
    }
    const model_response = {
      role: "assistant",
      content: "the end",
      tool_calls: [],
    };
    emit(window.stepComplete("s", { step_type: "inference", model_response }));
  };
}

test("1,000 events a second are shown with one rendering per frame, and the page stays usable", async () => {
  const { page, problems, close: end } = await openScripted(sendWords);
  await page.evaluate(() => {
    window.counts = { frames: 0, renderings: 0 };
    const count = () => {
      window.counts.frames += 1;
      requestAnimationFrame(count);
    };
    requestAnimationFrame(count);
    new MutationObserver(() => (window.counts.renderings += 1)).observe(
      document.querySelector("main"),
      { subtree: true, childList: true, characterData: true },
    );
  });
  await send(page, "go");
  await answers(page).getByText("w100 ").waitFor(INSIDE);
  const delay = await page.evaluate(
    () =>
      new Promise((resolve) => {
        const started = performance.now();
        document.querySelector("main select").value = "merge";
        document
          .querySelector("main select")
          .dispatchEvent(new Event("change", { bubbles: true }));
        requestAnimationFrame(() =>
          setTimeout(() => resolve(performance.now() - started)),
        );
      }),
  );
  await answers(page).getByText("the end").waitFor({ timeout: 60_000 });
  const { frames, renderings } = await page.evaluate(() => window.counts);
  console.log(
    `1,000 events/s: ${renderings} renderings in ${frames} frames, ${Math.round(delay)} ms from a choice to its frame`,
  );
  assert.ok(renderings <= frames + 20, `${renderings} in ${frames} frames`);
  assert.deepEqual(problems, []);
  await end();
});

test("a long session shows its newest turns, and the earlier ones when asked", async () => {
  const path = await makeSession();
  const [, , , agent, , session] = path.split("/");
  for (let number = 1; number <= 23; number += 1)
    await call("POST", `/agents/${agent}/session/${session}/turn`, {
      messages: [{ role: "user", content: `Message ${number}.` }],
    });
  const { page, close: end } = await open({ path });
  await page.getByText("You said: Message 23.").waitFor(INSIDE);
  assert.equal(await page.getByText("You said: Message 3.").count(), 0);
  assert.ok(await page.evaluate(() => window.scrollY > 0));
  await page.getByRole("button", { name: "Show earlier turns" }).click();
  await page.getByText("You said: Message 1.").waitFor(INSIDE);
  await page.getByRole("button", { name: "To the end" }).click();
  await page.getByText("You said: Message 23.").waitFor();
  await end();
});

test("the path from an agent to its answer works by keyboard alone", async () => {
  const agent = await makeAgent({ name: "By keyboard" });
  const { page, close: end } = await open({ path: `/console/agents/${agent}` });
  await page.getByLabel("Name of the session").focus(INSIDE);
  await page.keyboard.type("Keys");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Keys" }).waitFor(INSIDE);
  for (let presses = 0; presses < 30; presses += 1) {
    await page.keyboard.press("Tab");
    if (
      await page.evaluate(() => document.activeElement.tagName === "TEXTAREA")
    )
      break;
  }
  await page.keyboard.type("Hello");
  await page.keyboard.press("Enter");
  await answers(page).getByText("You said: Hello").waitFor(INSIDE);
  await answers(page).getByText("tokens").waitFor(INSIDE);
  assert.equal(
    await page.evaluate(() => document.activeElement.tagName),
    "TEXTAREA",
  );
  await end();
});
