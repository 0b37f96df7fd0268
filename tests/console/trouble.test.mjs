// What goes wrong on the first page: words, a way on, and nothing typed is lost. The way through it by keyboard alone.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { close, createKey, DESKTOP, ensureAgent, open, PHONE, violations } from "./browser.mjs";

after(close);

const SIZES = { desktop: DESKTOP, phone: PHONE };
const INSIDE = { timeout: 20_000 };
const TYPED = "Do not lose this";

const SLOW_DOWN = { status: 429, headers: { "retry-after": "2" }, json: { error: { message: "Slow down." } } };
const TROUBLES = {
  "a dead server": { fail: (route) => route.abort("connectionrefused"), words: "The server does not answer." },
  "a 429": { fail: (route) => route.fulfill(SLOW_DOWN), words: "Slow down." },
};

for (const [size, viewport] of Object.entries(SIZES)) {
  for (const [trouble, { fail, words }] of Object.entries(TROUBLES)) {
    test(`${trouble} keeps what was typed, and the same button goes on, ${size}`, async () => {
      const { page, close: end } = await open({ viewport, key: await createKey(`trouble-${size}`) });
      for (const [label, button, done] of [
        ["Instructions", "Make the agent", page.getByText("scripted/demo")],
        ["Message", "Send", page.getByText(/\d+ tokens/)],
        [null, "Add the document", page.getByText("1 of 1 can be searched")],
      ]) {
        if (label === "Instructions" && !(await needsAgent(page))) continue;
        if (!label && (await page.getByRole("button", { name: button }).count()) === 0) continue;
        if (label) await page.getByLabel(label).fill(TYPED, INSIDE);
        await page.route("**/v1/**", fail);
        await page.getByRole("button", { name: button }).click();
        await page.getByRole("alert").getByText(words).waitFor(INSIDE);
        if (label) assert.equal(await page.getByLabel(label).inputValue(), TYPED);
        assert.deepEqual(await violations(page), []);
        await page.unroute("**/v1/**");
        await page.getByRole("button", { name: button }).click();
        await done.waitFor({ timeout: 40_000 });
        assert.equal(await page.getByRole("alert").count(), 0);
      }
      await end();
    });

    test(`${trouble} at the start leaves a button that loads the page, ${size}`, async () => {
      const { page, close: end } = await open({ viewport, path: "/console/no/such/page" });
      await page.getByText("There is no such page").waitFor(INSIDE);
      await page.route("**/v1/**", fail);
      await page.getByRole("link", { name: "To the start", exact: true }).click();
      await page.getByRole("alert").getByText(words).waitFor(INSIDE);
      assert.deepEqual(await violations(page), []);
      await page.unroute("**/v1/**");
      await page.getByRole("button", { name: "Try again", exact: true }).click(INSIDE);
      await page.getByRole("heading", { name: "Say hello" }).waitFor(INSIDE);
      await end();
    });
  }

  test(`a stream that stays broken says so, and goes on when asked, ${size}`, async () => {
    await ensureAgent();
    const { page, close: end } = await open({ viewport });
    await page.getByLabel("Message").fill(TYPED, INSIDE);
    await page.clock.install();
    await page.route("**/turn", async (route) => {
      const response = await route.fetch();
      const cut = (await response.text()).split("\n\n").slice(0, 4).join("\n\n");
      await route.fulfill({ response, body: `${cut}\n\n` });
    });
    await page.route("**/events*", (route) => route.abort("connectionrefused"));
    await page.getByRole("button", { name: "Send" }).click();
    await page.getByText("The connection broke. Trying again").waitFor(INSIDE);
    await passTimeUntil(page, page.getByRole("alert"));
    assert.match(await page.getByRole("alert").innerText(), /No connection/);
    assert.match(await page.locator(".message-of-user").innerText(), new RegExp(TYPED));
    assert.deepEqual(await violations(page), []);
    await page.unroute("**/events*");
    await page.getByRole("alert").getByRole("button", { name: "Try again" }).click();
    await page.getByText(/\d+ tokens/).waitFor(INSIDE);
    assert.match(await page.locator(".message-of-agent").innerText(), new RegExp(`You said: ${TYPED}`));
    assert.equal(await page.getByRole("alert").count(), 0);
    await end();
  });

  test(`a key that expires while the page loads is asked for, and the page loads, ${size}`, async () => {
    const key = await createKey("expired");
    const { page, close: end } = await open({ viewport, key, path: "/console/no/such/page" });
    await page.getByText("There is no such page").waitFor(INSIDE);
    await page.route("**/v1/models", (route) => route.fulfill({ status: 401, json: { message: "Unauthorized" } }));
    await page.getByRole("link", { name: "To the start", exact: true }).click();
    await page.getByRole("dialog", { name: "Sign in again" }).waitFor(INSIDE);
    await page.unroute("**/v1/models");
    await page.getByLabel("API key").fill(key);
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Say hello" }).waitFor(INSIDE);
    assert.equal(await page.getByRole("alert").count(), 0);
    await end();
  });
}

test("the whole first page works by keyboard alone", async () => {
  const key = await createKey("keyboard");
  const { page, problems, close: end } = await open({ key: null });
  await page.getByLabel("API key").waitFor(INSIDE);
  await tabTo(page, "API key");
  await page.keyboard.type(key);
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Make the agent" }).waitFor(INSIDE);
  await tabTo(page, "Name");
  await page.keyboard.press("ControlOrMeta+a");
  await page.keyboard.type("Made by keys");
  await tabTo(page, "Make the agent");
  await page.keyboard.press("Enter");
  await page.getByText("Made by keys").waitFor(INSIDE);
  await tabTo(page, "Message");
  await page.keyboard.press("ControlOrMeta+a");
  await page.keyboard.type(TYPED);
  await tabTo(page, "Send");
  await page.keyboard.press("Space");
  await page.getByText(/\d+ tokens/).waitFor(INSIDE);
  await tabTo(page, "Add the document");
  await page.keyboard.press("Enter");
  await page.getByText("1 of 1 can be searched").waitFor({ timeout: 40_000 });
  await tabTo(page, "Sign out");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Sign in" }).waitFor(INSIDE);
  assert.deepEqual(problems, []);
  await end();
});

async function needsAgent(page) {
  await page.getByRole("heading", { name: "Say hello" }).waitFor(INSIDE);
  return (await page.getByRole("button", { name: "Make the agent" }).count()) === 1;
}

// Press Tab until the element with a name has the focus. A focused element must be seen.
async function tabTo(page, name) {
  for (let presses = 0; presses < 60; presses++) {
    await page.keyboard.press("Tab");
    const focused = await page.evaluate(() => {
      const element = document.activeElement;
      const { width, height } = element.getBoundingClientRect();
      const words = element.labels?.[0]?.innerText ?? element.getAttribute("aria-label") ?? element.innerText ?? "";
      return { words: words.trim(), isSeen: width > 0 && height > 0, outline: getComputedStyle(element).outlineStyle };
    });
    if (focused.words.startsWith(name)) {
      assert.ok(focused.isSeen);
      assert.notEqual(focused.outline, "none");
      return;
    }
  }
  assert.fail(`Tab does not reach ${name}`);
}

// Let the pauses between attempts pass, which take 16 seconds together.
async function passTimeUntil(page, locator) {
  for (let seconds = 0; seconds < 40 && (await locator.count()) === 0; seconds++) {
    await page.clock.runFor(1000);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
