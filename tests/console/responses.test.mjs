// Make responses: one after the other, in a conversation, in the background, with tools.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { check, close, LOOKS, prepare, waitForCount } from "./browser.mjs";
import { startMcp, SUMS } from "./mcp_server.mjs";
import { answersOf, send } from "./session.mjs";

const { api, open } = await prepare("responses");
let mcp;

before(async () => {
  mcp = await startMcp(SUMS);
});

after(async () => {
  await close();
  mcp?.stop();
});

for (const { size, viewport, scheme } of LOOKS) {
  test(`responses follow each other, with reasoning, search and approvals, ${size}`, async () => {
    await api.createStore(`Animals ${size}`, { "llamas <b>.md": "Llamas live in the Andes." });
    const { page, problems, close: end } = await open({ viewport, scheme, path: "/console/responses/new" });
    await page.getByLabel(`Animals ${size}`).check();
    await page.getByLabel("Reasoning").selectOption("low");
    await page.getByLabel("Label").fill("sums");
    await page.getByLabel("Address").fill(mcp.url);
    await page.getByRole("button", { name: "Add the server" }).click();
    await check(page, problems, `response-settings-${size}`);
    await page.getByText("Settings", { exact: true }).click();

    await send(page, 'Use file search for "Where do llamas live?"');
    await answersOf(page).getByText("tokens", { exact: false }).waitFor();
    assert.equal(await answersOf(page).getByText("Search in documents").count(), 1);
    assert.match(await answersOf(page).locator(".sources").innerText(), /llamas <b>\.md/);
    await send(page, "think: I ponder | My answer");
    await answersOf(page).last().getByText("tokens").waitFor();
    await answersOf(page).last().getByText("I ponder").waitFor();
    for (const [decision, words] of [
      ["Approve", "add answered: 5"],
      ["Deny", "did not approve"],
    ]) {
      await send(page, 'call: add {"a": 2, "b": 3}');
      await page.getByLabel(decision, { exact: true }).check();
      if (decision === "Approve") await check(page, problems, `approval-${size}`);
      await page.getByRole("button", { name: "Send the decision" }).click();
      await answersOf(page).last().getByText(words).waitFor();
      await answersOf(page).last().getByText("tokens").waitFor();
    }
    await send(page, "long: 200 words");
    await answersOf(page).last().getByText("word20 ").waitFor();
    await page.reload();
    await answersOf(page).getByText("word20 ").waitFor();
    await answersOf(page).getByText("tokens").waitFor();
    const words = (await answersOf(page).innerText()).match(/word\d+/g);
    assert.equal(words.length, 200);
    await page.getByRole("button", { name: "Show the previous response" }).click();
    await waitForCount(page.locator(".run"), 2);
    assert.deepEqual(problems, []);
    await end();
  });

  test(`responses run in the background, in a conversation, and call functions, ${size}`, async () => {
    const { page, problems, close: end } = await open({ viewport, scheme, path: "/console/responses/new" });
    const parameters = {
      type: "object",
      properties: { city: { type: "string", enum: ["Oslo", "Rome"] } },
      required: ["city"],
    };
    await page.getByLabel("All tools").fill(JSON.stringify([{ type: "function", name: "weather", parameters }]));
    await page.getByLabel("Conversation", { exact: true }).selectOption("new");
    await send(page, 'call: weather {"city": "Oslo"}');
    const form = page.getByRole("form", { name: "What the run waits for" });
    assert.equal(await form.getByLabel("city (required)").inputValue(), "Oslo");
    await form.getByLabel("Result of weather").fill("Sunny");
    await form.getByRole("button", { name: "Send and continue" }).click();
    await answersOf(page).last().getByText("weather answered: Sunny").waitFor();
    await answersOf(page).last().getByText("tokens").waitFor();
    const settings = JSON.parse(await page.getByLabel("JSON of the request").inputValue());
    assert.match(settings.conversation, /^conv_/);
    await page.getByLabel("In the background").check();
    await send(page, "in the background");
    await answersOf(page).last().getByText("You said: in the background").waitFor();
    await answersOf(page).last().getByText("tokens").waitFor();
    await answersOf(page).last().getByRole("button", { name: "JSON and code" }).click();
    await answersOf(page).last().getByText('"background": true').waitFor();
    assert.deepEqual(problems, []);
    await end();
  });
}

test("a response is stopped, and one that failed is sent again", async () => {
  const { page, problems, close: end } = await open({ path: "/console/responses/new" });
  await send(page, "long: 2000 words");
  await answersOf(page).getByText("word5 ").waitFor();
  await page.getByRole("button", { name: "Stop" }).click();
  await answersOf(page).getByText("cancelled").waitFor();
  await page.goto(page.url().replace(/responses.*/, "responses/new"));
  await send(page, "fail: after 3 words");
  await answersOf(page).last().getByText("failed after 3 words").waitFor();
  await answersOf(page).last().getByRole("button", { name: "Send again" }).click();
  await waitForCount(page.locator(".run"), 2);
  await answersOf(page).last().getByText("failed after 3 words").waitFor();
  assert.deepEqual(problems, []);
  await end();
});

test("nothing typed is lost when the server is gone, and the same button sends it", async () => {
  const { page, close: end } = await open({ path: "/console/responses/new" });
  await page.route("**/v1/responses", (route) => route.abort());
  await send(page, "Do not lose this");
  await page.getByText("The server does not answer.").waitFor();
  await page.waitForFunction(() =>
    [...document.querySelectorAll("textarea")].some((box) => box.value === "Do not lose this"),
  );
  await page.unroute("**/v1/responses");
  await page.getByRole("button", { name: "Send", exact: true }).click();
  await answersOf(page).last().getByText("You said: Do not lose this").waitFor();
  await end();
});
