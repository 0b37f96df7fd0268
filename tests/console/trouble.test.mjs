// What goes wrong on the first page: words, a way on, and nothing typed is lost. The way through it by keyboard alone.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { close, LOOKS, open as openWith, prepare, tabTo, violations } from "./browser.mjs";

after(close);

const { key, api, open } = await prepare("trouble");
await api.createAgent();
const TYPED = "Do not lose this";

const SLOW_DOWN = { status: 429, headers: { "retry-after": "2" }, json: { error: { message: "Slow down." } } };
const TROUBLES = {
  "a dead server": { fail: (route) => route.abort("connectionrefused"), words: "The server does not answer." },
  "a 429": { fail: (route) => route.fulfill(SLOW_DOWN), words: "Slow down." },
};

for (const { size, viewport, scheme } of LOOKS) {
  for (const [trouble, { fail, words }] of Object.entries(TROUBLES)) {
    test(`${trouble} keeps what was typed, and the same button goes on, ${size}`, async () => {
      const { page, close: end } = await (
        await prepare(`${trouble} ${size}`.replaceAll(" ", "-"))
      ).open({ viewport, scheme });
      for (const [label, button, done] of [
        ["Instructions", "Make the agent", page.getByText("scripted/demo")],
        ["Message", "Send", page.getByText(/\d+ tokens/)],
        [null, "Add the document", page.getByText("1 of 1 can be searched")],
      ]) {
        if (label === "Instructions" && !(await needsAgent(page))) continue;
        if (!label && (await page.getByRole("button", { name: button }).count()) === 0) continue;
        if (label) await page.getByLabel(label).fill(TYPED);
        await page.route("**/v1/**", fail);
        await page.getByRole("button", { name: button }).click();
        await page.getByRole("alert").getByText(words).waitFor();
        if (label) assert.equal(await page.getByLabel(label).inputValue(), TYPED);
        assert.deepEqual(await violations(page), []);
        await page.unroute("**/v1/**");
        await page.getByRole("button", { name: button }).click();
        await done.waitFor();
        assert.equal(await page.getByRole("alert").count(), 0);
      }
      await end();
    });

    test(`${trouble} at the start leaves a button that loads the page, ${size}`, async () => {
      const { page, close: end } = await open({ viewport, scheme, path: "/console/no/such/page" });
      await page.getByText("There is no such page").waitFor();
      await page.route("**/v1/**", fail);
      await page.getByRole("link", { name: "To the start", exact: true }).click();
      await page.getByRole("alert").getByText(words).waitFor();
      assert.deepEqual(await violations(page), []);
      await page.unroute("**/v1/**");
      await page.getByRole("button", { name: "Try again", exact: true }).click();
      await page.getByRole("heading", { name: "Say hello" }).waitFor();
      await end();
    });
  }

  test(`a stream that stays broken says so, and goes on when asked, ${size}`, async () => {
    const { page, close: end } = await open({ viewport, scheme });
    await page.getByLabel("Message").fill(TYPED);
    await page.clock.install();
    await page.route("**/turn", async (route) => {
      const response = await route.fetch();
      const cut = (await response.text()).split("\n\n").slice(0, 4).join("\n\n");
      await route.fulfill({ response, body: `${cut}\n\n` });
    });
    await page.route("**/events*", (route) => route.abort("connectionrefused"));
    await page.getByRole("button", { name: "Send" }).click();
    await page.getByText("The connection broke. Trying again … Is “make run” still running?").waitFor();
    await passTimeUntil(page, page.getByRole("alert"));
    assert.match(await page.getByRole("alert").innerText(), /No connection/);
    assert.match(await page.locator(".message-of-user").innerText(), new RegExp(TYPED));
    assert.deepEqual(await violations(page), []);
    await page.unroute("**/events*");
    await page.getByRole("alert").getByRole("button", { name: "Try again" }).click();
    await page.getByText(/\d+ tokens/).waitFor();
    assert.match(await page.locator(".message-of-agent").innerText(), new RegExp(`You said: ${TYPED}`));
    assert.equal(await page.getByRole("alert").count(), 0);
    await end();
  });

  test(`a key that expires while the page loads is asked for, and the page loads, ${size}`, async () => {
    const { page, close: end } = await open({ viewport, scheme, path: "/console/no/such/page" });
    await page.getByText("There is no such page").waitFor();
    await page.route("**/v1/models", (route) => route.fulfill({ status: 401, json: { message: "Unauthorized" } }));
    await page.getByRole("link", { name: "To the start", exact: true }).click();
    await page.getByRole("dialog", { name: "Sign in again" }).waitFor();
    await page.unroute("**/v1/models");
    await page.getByLabel("API key").fill(key);
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Say hello" }).waitFor();
    assert.equal(await page.getByRole("alert").count(), 0);
    await end();
  });
}

test("the whole first page works by keyboard alone", async () => {
  const { key: other } = await prepare("keyboard");
  const { page, problems, close: end } = await openWith({});
  await page.getByLabel("API key").waitFor();
  await tabTo(page, "API key");
  await page.keyboard.type(other);
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Make the agent" }).waitFor();
  await tabTo(page, "Name");
  await page.keyboard.press("ControlOrMeta+a");
  await page.keyboard.type("Made by keys");
  await tabTo(page, "Make the agent");
  await page.keyboard.press("Enter");
  await page.getByText("Made by keys").waitFor();
  await tabTo(page, "Message");
  await page.keyboard.press("ControlOrMeta+a");
  await page.keyboard.type(TYPED);
  await tabTo(page, "Send");
  await page.keyboard.press("Space");
  await page.getByText(/\d+ tokens/).waitFor();
  await tabTo(page, "Add the document");
  await page.keyboard.press("Enter");
  await page.getByText("1 of 1 can be searched").waitFor();
  await tabTo(page, "Sign out");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Sign in" }).waitFor();
  assert.deepEqual(problems, []);
  await end();
});

async function needsAgent(page) {
  await page.getByRole("heading", { name: "Say hello" }).waitFor();
  return (await page.getByRole("button", { name: "Make the agent" }).count()) === 1;
}

// Let the pauses between attempts pass, which take 16 seconds together.
async function passTimeUntil(page, locator) {
  for (let seconds = 0; seconds < 40 && (await locator.count()) === 0; seconds++) {
    await page.clock.runFor(1000);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
