// Talk to an agent: make one, send messages and files, answer its calls.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { check, close, LOOKS, prepare, waitForCount } from "./browser.mjs";
import { answersOf, createSession as create, send } from "./session.mjs";

after(close);

const { api, open } = await prepare("talk", ["use", "knowledge:write", "registry:write", "admin"]);
const createSession = (settings) => create(api, settings);
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
  parameters: [{ name: "question", parameter_type: "string", description: "The question" }],
};

for (const { size, viewport, scheme } of LOOKS) {
  test(`agents are listed with the newest first, found by name and id, and deleted, ${size}`, async () => {
    const first = await api.createAgent({ name: `Older of ${size}` });
    await api.createAgent({ name: `Newer of ${size}` });
    const { page, problems, close: end } = await open({ viewport, scheme, path: "/console/agents" });
    const rows = page.locator("tbody tr");
    await page.getByLabel("Find by name or id").fill(`of ${size}`);
    await waitForCount(page.locator("tbody tr"), 2);
    assert.match(await rows.first().innerText(), /Newer/);
    await page.getByLabel("Find by name or id").fill(first);
    await waitForCount(page.locator("tbody tr"), 1);
    assert.match(await rows.first().innerText(), /Older/);
    await check(page, problems, `agents-${size}`);

    await page.getByRole("button", { name: `Delete Older of ${size}` }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await page.getByText("No agent has this name or id").waitFor();
    await end();
  });

  test(`an agent is made in a form with its JSON beside it, ${size}`, async () => {
    const { page, problems, close: end } = await open({ viewport, scheme, path: "/console/agents/new" });
    const json = page.getByLabel("JSON of the agent");
    await page.getByLabel("Name", { exact: true }).fill("Formed");
    await page.getByLabel("builtin::rag", { exact: true }).check();
    await page.getByLabel("Arguments of builtin::rag").fill('{"vector_db_ids": ["none"]}');
    const settings = JSON.parse(await json.inputValue());
    assert.equal(settings.name, "Formed");
    assert.deepEqual(settings.toolgroups, [{ name: "builtin::rag", args: { vector_db_ids: ["none"] } }]);
    await page.getByLabel("Ask before calls of builtin::rag").check();
    await page.getByLabel("Arguments of builtin::rag").fill("");
    assert.deepEqual(JSON.parse(await json.inputValue()).toolgroups, [
      { name: "builtin::rag", require_approval: "always" },
    ]);
    await page.getByLabel("Ask before calls of builtin::rag").uncheck();
    assert.deepEqual(JSON.parse(await json.inputValue()).toolgroups, ["builtin::rag"]);
    await json.fill(
      JSON.stringify({
        ...settings,
        toolgroups: [],
        instructions: "Be kind.",
        max_infer_iters: 5000,
      }),
    );
    assert.equal(await page.getByLabel("Instructions").inputValue(), "Be kind.");
    assert.equal(await page.getByLabel("builtin::rag", { exact: true }).isChecked(), false);
    await json.fill("{");
    await page.getByText(/This is not JSON/).waitFor();
    await json.fill(JSON.stringify({ ...settings, max_infer_iters: 5000 }));

    await page.getByRole("button", { name: "Make the agent" }).click();
    const problem = page.locator(".field", {
      has: page.getByLabel("Maximum model calls per turn"),
    });
    await problem.locator(".field-error").waitFor();
    await check(page, problems, `agent-form-${size}`);
    await page.getByLabel("Maximum model calls per turn").fill("5");
    await page.getByRole("button", { name: "Make the agent" }).click();
    await page.getByRole("heading", { name: "Formed" }).waitFor();

    await page.getByRole("link", { name: "Copy this agent" }).click();
    await page.waitForFunction(() => document.querySelector("input")?.value === "Formed (copy)");
    await end();
  });

  test(`text, calls and results are shown where they happen, ${size}`, async () => {
    const path = await createSession({ toolgroups: ["builtin::photogen"] });
    const { page, problems, close: end } = await open({ viewport, scheme, path });
    await send(page, "Hello **you**");
    await answersOf(page).getByText("tokens").waitFor();
    assert.equal(await answersOf(page).locator("strong").innerText(), "you");
    await send(page, 'call: photogen {"query": "a fox"}');
    await answersOf(page).last().locator("img").waitFor();
    await answersOf(page).last().getByText("tokens").waitFor();
    await answersOf(page).last().locator("summary").click();
    await page.getByRole("group", { name: "Arguments" }).getByText("a fox").waitFor();
    await page.getByRole("group", { name: "Result" }).waitFor();
    await check(page, problems, `session-${size}`);
    await end();
  });

  test(`calls that wait for approval are approved or denied beside those of the client, ${size}`, async () => {
    const toolgroups = [{ name: "builtin::photogen", require_approval: "always" }];
    const path = await createSession({ toolgroups, client_tools: [ASK] });
    const { page, problems, close: end } = await open({ viewport, scheme, path });
    const form = page.getByRole("form", { name: "What the run waits for" });
    const fox = 'call: photogen {"query": "a fox"}';
    await send(page, `${fox}\n${fox}\ncall: ask {"question": "Why?"}`);
    await form.getByText("3 calls are waiting for you").waitFor();
    await form.getByRole("button", { name: "Send and continue" }).click();
    assert.equal(await form.locator(".field-error").count(), 3);
    await form.getByLabel("Approve", { exact: true }).first().check();
    await form.getByLabel("Deny", { exact: true }).last().check();
    await form.getByLabel("Result of ask").fill("Because.");
    await check(page, problems, `approvals-${size}`);
    await form.getByRole("button", { name: "Send and continue" }).click();
    await answersOf(page).last().getByText("tokens").waitFor();
    await waitForCount(answersOf(page).last().locator("img"), 1);
    await page.getByText("did not approve").first().waitFor();

    await send(page, fox);
    await form.getByText("One call is waiting for you").waitFor();
    await page.reload();
    await form.getByLabel("Deny", { exact: true }).check();
    await form.getByRole("button", { name: "Send the decision" }).click();
    await answersOf(page).last().getByText("did not approve").first().waitFor();
    await end();
  });

  test(`a turn that waits for its client shows a form per call, and resumes, ${size}`, async () => {
    const path = await createSession({ client_tools: [WEATHER, ASK] });
    const { page, problems, close: end } = await open({ viewport, scheme, path });
    await send(page, 'call: get_weather {"city": "Oslo", "options": {"a": [1]}}\ncall: ask {"question": "Why?"}');
    const form = page.getByRole("form", { name: "What the run waits for" });
    await form.getByText("2 calls are waiting for you").waitFor();
    assert.equal(await form.getByLabel("city (required)").inputValue(), "Oslo");
    assert.equal(await form.getByLabel("question (required)").inputValue(), "Why?");
    await form.getByRole("button", { name: "Send and continue" }).click();
    assert.equal(await form.locator(".field-error").count(), 3);
    await check(page, problems, `waiting-${size}`);
    await form.getByLabel("sky (required)").selectOption("grey");
    await form.getByLabel("degrees (required)").fill("warm");
    await form.getByLabel("Result of ask").fill("Because.");
    // What was typed outlives a reload.
    await page.reload();
    assert.equal(await form.getByLabel("Result of ask").inputValue(), "Because.");
    await form.getByRole("button", { name: "Send and continue" }).click();
    await form.getByText("This is not a number.").waitFor();
    await form.getByLabel("degrees (required)").fill("21.5");
    await form.getByRole("button", { name: "Send and continue" }).click();
    await answersOf(page).getByText('get_weather answered: {"sky":"grey","degrees":21.5}').waitFor();
    await answersOf(page).getByText("ask answered: Because.").waitFor();
    await end();
  });

  test(`documents and images come by button, drop and paste, ${size}`, async () => {
    const path = await createSession();
    const { page, problems, close: end } = await open({ viewport, scheme, path });
    const dot = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    await page.getByLabel("Files", { exact: true }).setInputFiles({
      name: "dot.png",
      mimeType: "image/png",
      buffer: Buffer.from(dot, "base64"),
    });
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
      clipboardData.items.add(new File(["pasted"], "pasted.txt", { type: "text/plain" }));
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
    const sent = page.waitForRequest((request) => request.url().endsWith("/turn"));
    await send(page, "What is this?");
    const body = (await sent).postDataJSON();
    assert.equal(body.messages[0].content[1].type, "image");
    assert.equal(body.documents.length, 1);
    await answersOf(page).getByText("with 1 image").waitFor();
    await page.locator(".sent img").waitFor();
    await page.reload();
    await page.locator(".sent img").waitFor();
    await end();
  });
}

test("a shield's violation is shown in its place", async () => {
  await api.call("POST", "/v1/shields", {
    shield_id: "secrets",
    provider_id: "deny-list",
    params: {
      phrases: ["launch code"],
      user_message: "I do not talk about that.",
    },
  });
  const path = await createSession({ output_shields: ["secrets"] });
  const { page, close: end } = await open({ path });
  await send(page, "say: The launch code is 0000.");
  await answersOf(page).getByText("blocked").waitFor();
  await answersOf(page).getByText("I do not talk about that.").first().waitFor();
  await end();
});

test("a long session shows its newest turns, and the earlier ones when asked", async () => {
  const path = await createSession();
  const [, , , agent, , session] = path.split("/");
  for (let number = 1; number <= 23; number += 1)
    await api.call("POST", `/v1/agents/${agent}/session/${session}/turn`, {
      messages: [{ role: "user", content: `Message ${number}.` }],
    });
  const { page, close: end } = await open({ path });
  await page.getByText("You said: Message 23.").waitFor();
  assert.equal(await page.getByText("You said: Message 3.").count(), 0);
  await page.waitForFunction(() => window.scrollY > 0);
  await page.getByRole("button", { name: "Show earlier turns" }).click();
  await page.getByText("You said: Message 1.").waitFor();
  await page.getByRole("button", { name: "To the end" }).click();
  await page.getByText("You said: Message 23.").waitFor();
  await end();
});

test("the path from an agent to its answer works by keyboard alone", async () => {
  const agent = await api.createAgent({ name: "By keyboard" });
  const { page, close: end } = await open({ path: `/console/agents/${agent}` });
  await page.getByLabel("Name of the session").focus();
  await page.keyboard.type("Keys");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Keys" }).waitFor();
  for (let presses = 0; presses < 30; presses += 1) {
    await page.keyboard.press("Tab");
    if (await page.evaluate(() => document.activeElement.tagName === "TEXTAREA")) break;
  }
  await page.keyboard.type("Hello");
  await page.keyboard.press("Enter");
  await answersOf(page).getByText("You said: Hello").waitFor();
  await answersOf(page).getByText("tokens").waitFor();
  assert.equal(await page.evaluate(() => document.activeElement.tagName), "TEXTAREA");
  await end();
});

// https://web.dev/articles/cls: up to 0.1 is good. The line below a growing text moves with it.
test("an answer that streams does not shift the page on a phone", async (context) => {
  const { page, close: end } = await open({
    ...LOOKS.find(({ size }) => size === "phone"),
    path: await createSession(),
  });
  await page.getByLabel("Message", { exact: true }).waitFor();
  await page.evaluate(() => {
    globalThis.shift = 0;
    new PerformanceObserver((list) => {
      for (const { value } of list.getEntries()) globalThis.shift += value;
    }).observe({ type: "layout-shift" });
  });
  await send(page, "long: 300 words");
  await answersOf(page).getByText("tokens").waitFor();
  const shift = await page.evaluate(() => globalThis.shift);
  context.diagnostic(`layout shift: ${shift.toFixed(3)}`);
  assert.ok(shift < 0.1, `${shift}`);
  await end();
});
