// A turn that runs: cancel it, send another message, reload the page, lose the connection.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { check, close, LOOKS, prepare, REFUSALS, waitForCount } from "./browser.mjs";
import { answersOf, createSession as create, messageOf, send } from "./session.mjs";

after(close);

const { key, api, open } = await prepare("busy");
const createSession = (settings) => create(api, settings);

for (const { size, viewport, scheme } of LOOKS) {
  test(`a turn is cancelled and sent again, and a failed one says why, ${size}`, async () => {
    const path = await createSession();
    const { page, problems, close: end } = await open({ viewport, scheme, path });
    await send(page, "long: 2000 words");
    await answersOf(page).getByText("word5 ").waitFor();
    await page.getByRole("button", { name: "Stop" }).click();
    await answersOf(page).getByText("cancelled").waitFor();
    assert.match(await answersOf(page).first().innerText(), /word5/);
    await send(page, "fail: after 3 words");
    await answersOf(page).last().getByText("failed after 3 words").waitFor();
    await check(page, problems, `failed-${size}`);
    await answersOf(page).last().getByRole("button", { name: "Send again" }).click();
    await waitForCount(page.locator(".run"), 3);
    await answersOf(page).last().getByText("failed after 3 words").waitFor();
    await end();
  });

  test(`a message in a busy session is refused, waits, interrupts or is added, ${size}`, async () => {
    const path = await createSession();
    const { page, problems, close: end } = await open({ viewport, scheme, path });
    const busy = page.getByLabel("While another one runs");
    await busy.waitFor();
    const choices = ["default (reject)", "reject: refuse this message", "enqueue: wait in line"];
    assert.deepEqual((await busy.locator("option").allInnerTexts()).slice(0, 3), choices);
    await send(page, "long: 300 words");
    await answersOf(page).getByText("word5 ").waitFor();
    await busy.selectOption("reject");
    await send(page, "refused");
    await page.getByText(/is running turn/).waitFor();
    assert.equal(await messageOf(page).inputValue(), "refused");
    await check(page, problems, `busy-${size}`);
    await busy.selectOption("enqueue");
    await send(page, "in line");
    await page.getByText("Sent. Waiting for its turn").waitFor();
    await answersOf(page).getByText("You said: in line").waitFor();
    await send(page, "long: 2000 words");
    await answersOf(page).last().getByText("word5 ").waitFor();
    await busy.selectOption("interrupt");
    await send(page, "now");
    await answersOf(page).getByText("You said: now").waitFor();
    assert.equal(await answersOf(page).nth(2).getByText("cancelled").count(), 1);
    // A turn takes messages before its second call of the model.
    await send(page, "long: 100 words");
    await answersOf(page).last().getByText("word5 ").waitFor();
    await busy.selectOption("merge");
    await send(page, "added");
    await answersOf(page).last().getByText("You said: added").waitFor();
    await end();
  });

  test(`a reload in the middle of a turn goes on where the stream was, ${size}`, async () => {
    const path = await createSession();
    const { page, close: end } = await open({ viewport, scheme, path });
    await send(page, "long: 200 words");
    await answersOf(page).getByText("word20 ").waitFor();
    await messageOf(page).fill("a draft");
    await page.reload();
    await answersOf(page).getByText("word20 ").waitFor();
    assert.equal(await messageOf(page).inputValue(), "a draft");
    await answersOf(page).getByText("tokens").waitFor();
    const words = (await answersOf(page).innerText()).match(/word\d+/g);
    assert.deepEqual(
      words,
      Array.from({ length: 200 }, (_, index) => `word${index + 1}`),
    );
    await end();
  });
}

// Wait until the message that did not arrive is in its place again.
async function waitForValue(page, text) {
  await page.waitForFunction((value) => document.querySelector("textarea").value === value, text);
}

test("nothing typed is lost when the key expires, there are too many requests, or the server is gone", async () => {
  const path = await createSession();
  for (const [fulfil, words] of [
    ...REFUSALS,
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
    await messageOf(page).waitFor();
    await page.route("**/turn", fulfil);
    await send(page, "Do not lose this");
    await page.getByText(words).waitFor();
    await waitForValue(page, "Do not lose this");
    await page.unroute("**/turn");
    if (words === "Sign in again") {
      await page.getByLabel("API key").fill(key);
      await page.keyboard.press("Enter");
      await page.getByRole("dialog").waitFor({ state: "hidden" });
    }
    assert.equal(await messageOf(page).inputValue(), "Do not lose this");
    await page.getByRole("button", { name: "Send", exact: true }).click();
    await answersOf(page).last().getByText("You said: Do not lose this").waitFor();
    await end();
  }
});

test("a message that did not arrive waits beside another one that was begun", async () => {
  const { page, close: end } = await open({ path: await createSession() });
  await messageOf(page).waitFor();
  let refuse;
  await page.route("**/turn", (route) => (refuse = () => route.abort()));
  await send(page, "First");
  await messageOf(page).fill("Second");
  await waitForCount(page.locator(".run"), 1);
  refuse();
  await page.getByText("The server does not answer.").waitFor();
  assert.equal(await messageOf(page).inputValue(), "Second");
  await page.unroute("**/turn");
  await page.getByRole("button", { name: "Try again" }).click();
  await answersOf(page).getByText("You said: First").waitFor();
  assert.equal(await messageOf(page).inputValue(), "Second");
  await end();
});

test("a stream that breaks goes on, and one that stays broken can be joined again", async () => {
  const path = await createSession();
  const { page, close: end } = await open({ path });
  await messageOf(page).waitFor();
  let isDown = true;
  await page.route("**/turn", async (route) => {
    const response = await route.fetch();
    const cut = (await response.text()).split("\n\n").slice(0, 4).join("\n\n") + "\n\n";
    await route.fulfill({ response, body: cut });
  });
  await page.route("**/events*", (route) =>
    isDown ? route.fulfill({ status: 503, json: { error: { message: "Down." } } }) : route.continue(),
  );
  await send(page, "Hello again");
  await answersOf(page).getByText("Down.").waitFor();
  isDown = false;
  await answersOf(page).getByRole("button", { name: "Try again" }).click();
  await answersOf(page).getByText("You said: Hello again").waitFor();
  await answersOf(page).getByText("tokens").waitFor();
  assert.equal((await answersOf(page).innerText()).match(/You said: Hello again/g).length, 1);
  await end();
});

test("the first choice for a busy session names the agent's setting", async () => {
  const { page, close: end } = await open({ path: await createSession({ when_busy: "merge" }) });
  const busy = page.getByLabel("While another one runs");
  await busy.waitFor();
  assert.equal(await busy.locator("option").first().innerText(), "agent's setting (merge)");
  await end();
});
