// Read what happened: sessions, turns, responses, conversations and stored chats.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import {
  check,
  close,
  hasOverflow,
  LOOKS,
  PHONE,
  prepare,
  readClipboard,
  shot,
  show,
  waitForCount,
} from "./browser.mjs";
import { MODEL, URL_, until } from "./api.mjs";

after(close);

const { key, api, open } = await prepare("read");
const nobody = await prepare("read-empty");
const HOSTILE = "<img src=https://elsewhere.example/x.png onerror=alert(1)> javascript:alert(1) \u202egnp.exe";
const WEATHER = {
  name: "get_weather",
  description: "Returns the weather",
  parameters: [{ name: "city", parameter_type: "string", description: "The city" }],
};

const made = {};

const createSession = (name) => api.createSession(made.agent, name);
const runTurn = (session, content) => api.runTurn(made.agent, session, content);
const sessionsPath = () => `/console/agents/${made.agent}/sessions`;
const turnPath = (session, turn) => `${sessionsPath()}/${session}/turns/${turn}`;

before(async () => {
  made.agent = await api.createAgent({
    name: `Reader ${HOSTILE}`,
    instructions: "Answer briefly.",
    client_tools: [WEATHER],
    toolgroups: ["builtin::code_interpreter"],
  });
  made.session = await createSession("Weather talk");
  made.failedSession = await createSession(`Broken ${HOSTILE}`);
  made.hello = await runTurn(made.session, "Hello");
  made.waiting = await runTurn(made.session, "get_weather in Bern");
  made.failed = await runTurn(made.failedSession, `say: Some words\nfail: after 1 words\n${HOSTILE}`);
  made.response = (await api.respond({ input: "Hello response" })).id;
  const broken = { input: "say: a b c\nfail: after 1 words", background: true };
  made.failedResponse = (await api.respond(broken)).id;
  made.conversation = (await api.call("POST", "/v1/conversations", { metadata: { title: "A trip to Bern" } })).id;
  await api.respond({ input: "Hello trip", conversation: made.conversation });
  const chat = { model: MODEL, messages: [{ role: "user", content: `Hello chat ${HOSTILE}` }], store: true };
  made.chat = (await api.call("POST", "/v1/chat/completions", chat)).id;
});

const PAGES = {
  sessions: [() => sessionsPath(), "Weather talk"],
  turns: [() => `${sessionsPath()}/${made.session}/turns`, "get_weather in Bern"],
  turn: [() => turnPath(made.session, made.hello), /^Output$/],
  "turn-waiting": [() => turnPath(made.session, made.waiting), "The turn waits for its client"],
  "turn-failed": [() => turnPath(made.failedSession, made.failed), "The scripted model failed after 1 words"],
  responses: [() => "/console/responses", "Created"],
  response: [() => `/console/responses/${made.response}`, /^Output$/],
  "response-failed": [() => `/console/responses/${made.failedResponse}`, "The scripted model failed after 1 words"],
  conversations: [() => "/console/conversations", "A trip to Bern"],
  conversation: [() => `/console/conversations/${made.conversation}`, "Hello trip"],
  chats: [() => "/console/chats", "Hello chat"],
  chat: [() => `/console/chats/${made.chat}`, "Hello chat"],
};

test("each page opens", async (context) => {
  const { page, problems, close: end } = await open(LOOKS[0]);
  for (const [name, [path, words]] of Object.entries(PAGES)) {
    await context.test(name, async () => {
      await show(page, LOOKS[0]);
      await page.goto(`${URL_}/prod${path()}`);
      await page.locator("main").getByText(words).first().waitFor();
      for (const look of LOOKS) {
        await show(page, look);
        await check(page, problems, `read-${name}-${look.size}`);
      }
    });
  }
  await end();
});

for (const { size, viewport, scheme } of LOOKS) {
  test(`somebody finds out why a turn failed and what it cost, ${size}`, async () => {
    const { page, problems, close: end } = await open({ viewport, scheme, path: "/console/agents" });
    await page.getByRole("link", { name: /^Reader/ }).click();
    await page.getByRole("link", { name: "Find sessions and turns" }).click();
    await page.getByLabel("Status").selectOption("failed");
    await page.getByText("Weather talk").waitFor({ state: "hidden" });
    await page.getByRole("link", { name: /^Broken/ }).click();
    await page.getByRole("link", { name: /^say: Some words/ }).click();

    const why = page.getByRole("region", { name: "Why it failed" });
    await why.waitFor();
    assert.match(await why.innerText(), /Failed in a model call, .* after its start/);
    assert.match(await why.innerText(), /The scripted model failed after 1 words/);
    assert.match(await page.locator(".figures").innerText(), /Cost\s+\$0\.0+\d/);
    await page.getByRole("button", { name: "What the model saw" }).click();
    await page.getByText("Answer briefly.").waitFor();
    await page.getByText("code_interpreter", { exact: true }).first().waitFor();
    await check(page, problems, `read-why-${size}`);
    await end();
  });
}

test("sessions are found by name, id and status, newest first", async () => {
  const { page, close: end } = await open({ path: sessionsPath() });
  const rows = page.locator("tbody tr");
  await rows.nth(1).waitFor();
  assert.match(await rows.first().innerText(), /Broken/);
  const find = page.getByLabel("Name or id");
  await find.fill("weather");
  await page.getByText("Broken").waitFor({ state: "hidden" });
  await waitForCount(page.locator("tbody tr"), 1);
  await page.reload();
  await page.getByText("Weather talk").waitFor();
  assert.equal(await find.inputValue(), "weather");
  await find.fill(made.failedSession);
  await page.getByText("Weather talk").waitFor({ state: "hidden" });
  await rows.getByText("Broken").waitFor();
  await find.fill("no such name");
  await page.getByText("No session matches").waitFor();
  await end();
});

test("a list is loaded page by page", async () => {
  const session = await createSession("Many turns");
  for (let number = 0; number < 23; number += 1) await runTurn(session, `say: Answer ${number}`);
  const { page, close: end } = await open({ path: `${sessionsPath()}/${session}/turns` });
  const rows = page.locator("tbody tr");
  await rows.first().waitFor();
  const before = await rows.count();
  if (before < 23) {
    await page.getByRole("button", { name: "Load more" }).click();
    await rows.nth(22).waitFor();
  }
  assert.match(await rows.first().innerText(), /Answer 22/);
  await waitForCount(page.locator("tbody tr"), 23);
  await page.getByLabel("Words or id of a turn").fill("Answer 7");
  await page.getByText("Answer 22").waitFor({ state: "hidden" });
  await waitForCount(page.locator("tbody tr"), 1);
  await end();
});

for (const [list, label, ids] of [
  ["responses", "Words, model or id", () => made.failedResponse],
  ["conversations", "Words of the metadata, or id", () => made.conversation],
  ["chats", "Words, model or id", () => made.chat],
]) {
  test(`${list} are found by id and by words`, async () => {
    const { page, close: end } = await open({ path: `/console/${list}` });
    const rows = page.locator("tbody tr");
    await rows.first().waitFor();
    await page.getByLabel(label).fill(ids());
    await page.waitForURL(/find=/);
    await waitForCount(page.locator("tbody tr"), 1);
    await page.getByLabel(label).fill("no such words");
    await page.getByText(/^No \w+ matches$/).waitFor();
    await end();
  });
}

test("responses are found by status", async () => {
  const { page, close: end } = await open({ path: "/console/responses" });
  await page.locator("tbody tr").nth(1).waitFor();
  await page.getByLabel("Status").selectOption("failed");
  await page.getByText("completed", { exact: true }).first().waitFor({ state: "hidden" });
  await waitForCount(page.locator("tbody tr"), 1);
  await end();
});

for (const [list, words] of [
  ["responses", "There are no responses yet"],
  ["conversations", "There are no conversations yet"],
  ["chats", "There are no stored chats yet"],
]) {
  test(`an empty list of ${list} says how to begin`, async () => {
    const { page, problems, close: end } = await nobody.open({ path: `/console/${list}`, viewport: PHONE });
    await page.getByText(words).waitFor();
    await check(page, problems, `read-empty-${list}`);
    await end();
  });
}

test("every step opens to its input and output, by keyboard", async () => {
  const session = await createSession("Steps");
  const waiting = await runTurn(session, "get_weather in Thun");
  await api.call("POST", `/v1/agents/${made.agent}/session/${session}/turn/${waiting}/resume`, {
    tool_responses: [{ call_id: "call_1", tool_name: "get_weather", content: `Sunny ${HOSTILE}` }],
    stream: false,
  });
  const { page, problems, close: end } = await open({ path: turnPath(session, waiting) });
  const rows = page.locator(".timeline-row");
  await rows.nth(2).waitFor();
  assert.match(await rows.nth(1).innerText(), /Waiting for the client/);
  for (const row of await rows.all()) {
    await row.locator("summary").first().focus();
    await page.keyboard.press("Enter");
  }
  await rows.nth(1).getByText('"city": "Thun"').waitFor();
  await rows.nth(1).getByText("Sunny <img").waitFor();
  assert.match(await rows.first().innerText(), /first token after \d+ ms/);
  assert.match(await rows.first().innerText(), /[\d,]+ → [\d,]+ tokens · \$0/);
  assert.match(await rows.first().innerText(), /[\d,]+ tokens of input/);
  await rows.first().getByRole("button", { name: "What the model saw" }).focus();
  await page.keyboard.press("Enter");
  await rows.first().getByText("Tools offered").waitFor();
  assert.equal(await page.locator("main img").count(), 0);
  await check(page, problems, "read-steps");
  await end();
});

test("what the model saw in a step of a response can be read", async () => {
  const { page, problems, close: end } = await open({ path: `/console/responses/${made.response}` });
  await page.locator(".timeline-row summary").first().click();
  await page.getByRole("button", { name: "What the model saw" }).click();
  await page.locator(".model-input .message").getByText("Hello response").waitFor();
  await check(page, problems, "read-response-step");
  await end();
});

test("marks say what was cut, what the model did not see, and what is not known", async () => {
  const { page, close: end } = await open({ path: turnPath(made.session, made.hello) });
  await page.route("**/input?**", async (route) => {
    const response = await route.fetch();
    const json = await response.json();
    const marks = {
      is_history_cut: true,
      cut_texts: [{ message: 1, characters: 12_345 }],
      shortened_results: [0],
      unknown: ["The tools are not known."],
      tools: null,
      parameters: null,
    };
    await route.fulfill({ response, json: { ...json, ...marks } });
  });
  await page.locator(".timeline-row summary").first().click();
  await page.getByRole("button", { name: "What the model saw" }).click();
  for (const words of [
    "The model did not see the older part of the history",
    "cut here: 12,345 more characters",
    "the model got the beginning of this result only",
    "The tools are not known.",
    "Its tools are not known.",
    "Its parameters are not known.",
  ])
    await page.getByText(words).first().waitFor();
  await shot(page, "read-marks");
  await end();
});

test("every object shows its JSON and can be copied as curl and Python", async () => {
  for (const name of ["turn", "response", "conversation", "chat"]) {
    const { page, close: end } = await open({ path: PAGES[name][0]() });
    await page.locator("summary", { hasText: "JSON and code" }).last().click();
    assert.match(await page.locator("figure.json pre").innerText(), /^\{\n {2}"/);
    await page.getByRole("button", { name: "Copy as curl" }).click();
    const curl = await readClipboard(page);
    await page.getByRole("button", { name: "Copy as Python" }).click();
    const python = await readClipboard(page);
    assert.match(curl, /^curl -sS/);
    assert.match(python, /requests/);
    assert.ok(!`${curl}${python}`.includes(key));
    await end();
  }
});

test("a running turn is followed live to its end", async () => {
  const session = await createSession("Live");
  const { page, problems, close: end } = await open({ path: sessionsPath() });
  await page.getByText("Weather talk").waitFor();
  const done = runTurn(session, "long: 300 words");
  const turns = () => api.call("GET", `/v1/agents/${made.agent}/session/${session}/turns?limit=1`);
  const { data } = await until(turns, ({ data: found }) => found.length > 0);
  await page.goto(`${URL_}/prod${turnPath(session, data[0].turn_id)}`);
  await page.getByText("followed live").waitFor();
  await page
    .locator(".live-text")
    .getByText(/word\d+ /)
    .waitFor();
  await shot(page, "read-live");
  await page.getByText("followed live").waitFor({ state: "hidden" });
  await page.getByRole("heading", { name: "Output" }).waitFor();
  assert.match(await page.locator(".figures").innerText(), /completed/);
  assert.deepEqual(problems, []);
  await done;
  await end();
});

test("from any turn, a new session continues with what was said", async () => {
  const { page, problems, close: end } = await open({ path: turnPath(made.session, made.hello) });
  await page.getByRole("button", { name: "Continue in a new session" }).click();
  await page.waitForURL(/sessions\/[^/]+$/);
  const session = page.url().split("/").pop();
  assert.notEqual(session, made.session);
  await page.getByText("You said: Hello", { exact: true }).waitFor();
  await page.getByRole("link", { name: "a turn of another session" }).waitFor();
  await check(page, problems, "read-continue");
  await page.getByLabel("Message", { exact: true }).fill("And then?");
  await page.getByRole("button", { name: "Send", exact: true }).click();
  await page.getByText("You said: And then?", { exact: true }).waitFor();
  const path = `/v1/agents/${made.agent}/session/${session}`;
  const { turns, session_name } = await api.call("GET", path);
  assert.equal(session_name, "Continued: Weather talk");
  const { turn_id, steps } = turns[1];
  const input = await api.call("GET", `${path}/turn/${turn_id}/step/${steps[0].step_id}/input`);
  const messages = input.messages.filter(({ role }) => role !== "system");
  assert.deepEqual(
    messages.map(({ role, content }) => [role, content.split("\n")[0]]),
    [
      ["user", "Hello"],
      ["assistant", "You said: Hello"],
      ["user", "And then?"],
    ],
  );
  await end();
});

test("from a response and a conversation, a new response continues", async () => {
  const { page, close: end } = await open({ path: `/console/responses/${made.response}` });
  await page.getByRole("link", { name: "Continue from this response" }).click();
  await page.waitForURL(new RegExp(`previous=${made.response}`));
  await page.getByRole("heading", { name: "New response" }).waitFor();
  await end();
});

test("10,000 steps and 200 calls in a turn stay usable", async () => {
  const { page, problems, close: end } = await open({ path: "/console/agents" });
  await page.route("**/turn/*", async (route) => {
    const response = await route.fetch();
    const turn = await response.json();
    const start = Date.parse(turn.started_at);
    const at = (place) => new Date(start + place * 10).toISOString();
    const times = (place) => ({ turn_id: turn.turn_id, started_at: at(place), completed_at: at(place + 1) });
    const line = "x".repeat(1_000_000);
    const steps = Array.from({ length: 10_000 }, (_, place) => ({
      ...turn.steps[0],
      ...times(place),
      step_id: `step-${place}`,
    }));
    const calls = Array.from({ length: 200 }, (_, place) => ({
      call_id: `call-${place}`,
      tool_name: place ? "run" : HOSTILE,
      arguments: { line: place },
    }));
    steps[0] = {
      ...times(0),
      step_id: "step-0",
      step_type: "tool_execution",
      tool_calls: calls,
      tool_responses: calls.map(({ call_id, tool_name }, place) => ({
        call_id,
        tool_name,
        content: place ? "ok" : `${HOSTILE} ${line}`,
        metadata: null,
      })),
    };
    await route.fulfill({ response, json: { ...turn, steps, completed_at: at(10_000) } });
  });
  await page.goto(`${URL_}/prod${turnPath(made.session, made.hello)}`);
  await page.locator(".timeline-row").first().waitFor();
  const count = () => page.evaluate(() => document.querySelectorAll("*").length);
  assert.ok((await count()) < 3000);
  await page.locator(".timeline-row summary").first().click();
  await page.getByRole("button", { name: /Show more calls \(180 left\)/ }).waitFor();
  assert.ok((await count()) < 3000);
  await page.getByRole("button", { name: "To the last steps" }).click();
  await page.getByRole("button", { name: /Show earlier steps \(9,900 more\)/ }).waitFor();
  assert.ok((await count()) < 3000);
  await page.getByLabel("Show").selectOption("tool");
  assert.equal(await page.locator(".timeline-row").count(), 1);
  assert.equal(await hasOverflow(page), false);
  await shot(page, "read-many");
  assert.deepEqual(problems, []);
  await end();
});

test("a server that fails, a limit and an unknown turn: words and a way on", async () => {
  const { page, close: end } = await open({ path: `${sessionsPath()}/${made.session}/turns/${made.session}` });
  await page.getByText("Not found", { exact: true }).waitFor();
  await page.route("**/v1/responses?**", (route) =>
    route.fulfill({ status: 429, headers: { "retry-after": "1" }, json: { error: { message: "Slow down." } } }),
  );
  await page.getByRole("link", { name: "Responses" }).click();
  await page.getByText("Too many requests").waitFor();
  await page.unroute("**/v1/responses?**");
  await page.getByRole("button", { name: "Try again" }).click();
  await page.locator("tbody tr").first().waitFor();
  await end();
});
