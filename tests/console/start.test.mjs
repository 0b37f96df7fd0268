// The frame of the console, sign-in, and the three steps of its first page.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { createKey, URL_ } from "./api.mjs";
import {
  check,
  close,
  LOOKS,
  open as openWith,
  PHONE,
  prepare,
  REFUSALS,
  readClipboard,
  shot,
  violations,
} from "./browser.mjs";

after(close);

const empty = await prepare("start-empty");
const { key, api, open } = await prepare("start");
await api.createAgent();

for (const { size, viewport, scheme } of LOOKS) {
  test(`the first page opens without violations, ${size}`, async () => {
    const { page, problems, close: end } = await empty.open({ viewport, scheme });
    await page.getByRole("heading", { name: "Say hello" }).waitFor();

    await check(page, problems, `start-${size}`);
    await end();
  });

  test(`sign-in says that a key is wrong, ${size}`, async () => {
    const { page, problems, close: end } = await openWith({ viewport, scheme });
    await page.getByLabel("API key").fill("stk_wrong");
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText("This key is wrong, expired or revoked.").waitFor();

    assert.equal(await page.getByLabel("API key").inputValue(), "stk_wrong");
    await check(page, problems, `sign-in-${size}`);
    await end();
  });

  test(`the three steps are done, and a later visit shows it, ${size}`, async () => {
    const steps = await prepare(`start-steps-${size}`);
    const { page, problems, close: end } = await steps.open({ viewport, scheme });
    await page.getByRole("button", { name: "Make the agent" }).click();
    await page.getByText("scripted/demo").waitFor();

    await page.getByLabel("Message").fill("Hello **you** <img src=https://elsewhere.example/x.png onerror=alert(1)>");
    await page.getByRole("button", { name: "Send" }).click();
    await page.getByText(/\d+ tokens/).waitFor();
    const answer = page.locator(".message-of-agent");
    assert.equal(await answer.locator("strong").innerText(), "you");
    assert.equal(await answer.locator("img").count(), 0);
    assert.match(await answer.innerText(), /<img src=/);

    await page.getByRole("button", { name: "Add the document" }).click();
    await page.getByText("1 of 1 can be searched").waitFor();
    assert.equal(await page.locator(".step.is-done").count(), 3);
    await check(page, problems, `steps-${size}`);

    await page.reload();
    await page.getByText("1 of 1 can be searched").waitFor();
    await page.getByLabel("Message").fill("Hello");
    await page.getByRole("button", { name: "Send" }).click();
    await page.getByText(/\d+ tokens/).waitFor();
    assert.equal(await page.getByLabel("Message").inputValue(), "");
    await check(page, problems, `steps-later-${size}`);

    await page.getByRole("link", { name: "new response that searches it" }).click();
    await page.getByRole("checkbox", { name: /First documents/, checked: true }).waitFor();
    await page.getByLabel("Message", { exact: true }).fill('Use file search for "When is the shop open?"');
    await page.getByRole("button", { name: "Send", exact: true }).click();
    await page.locator(".run-answer").getByText("opening-hours.md").first().waitFor();
    await page.reload();
    await page
      .locator(".run-answer")
      .getByText(/\d+ tokens/)
      .waitFor();
    await page.locator("summary", { hasText: "Settings" }).click();
    await page.getByRole("checkbox", { name: /First documents/, checked: true }).waitFor();
    await check(page, problems, `steps-asked-${size}`);
    await end();
  });
}

test("a right key signs in, and the banner shows tenant and scopes", async () => {
  const { page, requests, close: end } = await openWith({});
  await page.getByLabel("API key").fill(key);
  await page.keyboard.press("Enter");
  await page.getByText("Tenant start").waitFor();

  assert.equal(await page.getByRole("banner").getByText("knowledge:write").count(), 1);
  await page.reload();
  await page.getByText("Tenant start").waitFor();
  const withKey = requests.filter((request) => request.headers()["authorization"]);
  assert.ok(withKey.length > 0);
  assert.ok(withKey.every((request) => request.url().startsWith(`${URL_}/prod/v1/`)));
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByRole("heading", { name: "Sign in" }).waitFor();
  assert.deepEqual(await page.evaluate(() => [sessionStorage.length, localStorage.length, document.cookie]), [
    0,
    0,
    "",
  ]);
  await end();
});

test("a key with one scope signs in, sees its tenant, and is not offered what needs another scope", async () => {
  for (const [scope, words] of [
    ["use", "A key with the scope knowledge:write adds documents."],
    ["admin", "These steps need the scope use"],
  ]) {
    const { page, close: end } = await openWith({ key: await createKey("other", [scope]) });
    await page.getByText("Tenant other").waitFor();
    await page.getByText(words).waitFor();

    assert.deepEqual(await page.getByRole("banner").getByRole("listitem").allInnerTexts(), [scope]);
    assert.equal(await page.getByRole("button", { name: "Add the document" }).count(), 0);
    assert.equal(await page.getByRole("alert").count(), 0);
    await end();
  }
});

test("the API reference opens from the navigation", async () => {
  const { page, close: end } = await open();
  const [reference] = await Promise.all([
    page.waitForEvent("popup"),
    page.getByRole("link", { name: "API reference" }).click(),
  ]);

  await reference.getByText("/v1/whoami").first().waitFor();
  await end();
});

test("a reload in the middle of a turn shows it to its end", async () => {
  const { page, close: end } = await open();
  await page.getByLabel("Message").fill(`count ${"one two three ".repeat(30)}`);
  await page.getByRole("button", { name: "Send" }).click();
  await page.locator(".message-of-agent .markdown").waitFor();
  await page.reload();
  await page.locator(".message-of-agent .markdown").waitFor();
  await page.getByText(/\d+ tokens/).waitFor();

  assert.match(await page.locator(".message-of-agent").innerText(), /one two three/);
  await end();
});

test("a stream that breaks goes on where it was", async () => {
  const { page, close: end } = await open();
  await page.getByRole("button", { name: "Send" }).waitFor();
  // The first answer ends after its second event, as if the connection had died.
  await page.route("**/turn", async (route) => {
    const response = await route.fetch();
    const text = await response.text();
    const cut = text.split("\n\n").slice(0, 4).join("\n\n") + "\n\n";
    await route.fulfill({ response, body: cut });
  });
  await page.getByRole("button", { name: "Send" }).click();
  await page.getByText(/\d+ tokens/).waitFor();

  assert.match(await page.locator(".message-of-agent").innerText(), /You said: Hello/);
  await end();
});

test("a key that expires is asked for again, and what was typed is kept", async () => {
  const { page, close: end } = await open();
  await page.getByLabel("Message").fill("Do not lose this");
  await page.evaluate(() => sessionStorage.setItem("stint.key", "stk_x"));
  await page.route("**/v1/agents/**", (route) =>
    route.request().method() === "POST"
      ? route.fulfill({
          status: 401,
          json: { error: { message: "Expired.", code: "unauthorized" } },
        })
      : route.continue(),
  );
  await page.getByRole("button", { name: "Send" }).click();
  await page.getByRole("dialog", { name: "Sign in again" }).waitFor();
  assert.deepEqual(await violations(page), []);
  await shot(page, "sign-in-again");
  await page.unroute("**/v1/agents/**");
  await page.getByLabel("API key").fill(key);
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").waitFor({ state: "hidden" });
  await page.getByText("You are not signed in").waitFor({ state: "hidden" });
  assert.equal(await page.getByLabel("Message").inputValue(), "Do not lose this");
  await page.getByRole("button", { name: "Send" }).click();
  await page.getByText(/\d+ tokens/).waitFor();
  await end();
});

test("a 429 shows the time to wait, and a dead server says so", async () => {
  for (const [fulfil, words] of REFUSALS) {
    const { page, close: end } = await openWith({});
    await page.route("**/v1/models", fulfil);
    await page.getByLabel("API key").fill(key);
    await page.keyboard.press("Enter");
    await page.getByText(words).waitFor();
    await shot(page, `error-${typeof words}`);
    await end();
  }
});

test("every path of the console is served with and without the stage, and unknown ones say so", async () => {
  for (const [stage, path] of [
    ["", "/console"],
    ["", "/console/"],
    ["/prod", "/console/no/such/page"],
    ["/prod", "/"],
  ]) {
    const { page, problems, close: end } = await open({ stage, path });
    const words = path.includes("such") ? "There is no such page" : "Make an agent, talk to it";
    await page.getByText(words).waitFor();
    assert.match(page.url(), /\/console/);
    assert.deepEqual(problems, []);
    await end();
  }
});

test("requests can be copied as commands, without the key", async () => {
  const { page, close: end } = await open();
  await page.getByLabel("Message").fill("It's me");
  await page.getByRole("button", { name: "Send" }).click();
  await page.getByText(/\d+ tokens/).waitFor();
  await page.getByRole("button", { name: "Copy as curl" }).first().click();
  const curl = await readClipboard(page);
  await page.getByRole("button", { name: "Copy as Python" }).first().click();
  const python = await readClipboard(page);

  assert.match(curl, /^curl -sS \\\n {2}'http.*\$STINT_API_KEY/s);
  assert.match(curl, /It'\\''s me/);
  assert.match(python, /"stream": False/);
  assert.ok(!`${curl}${python}`.includes(key));
  await page.getByText("Python code copied").waitFor();
  await end();
});

test("the navigation of a phone opens, and the keyboard reaches the content", async () => {
  const { page, close: end } = await open({ viewport: PHONE });
  await page.getByRole("button", { name: "Menu" }).click();
  await page.getByRole("dialog", { name: "Menu" }).waitFor();
  assert.deepEqual(await violations(page), []);
  await shot(page, "menu-phone");
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "hidden" });
  await page.reload();
  await page.getByRole("heading", { name: "Start" }).waitFor();
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  assert.equal(await page.evaluate(() => document.activeElement.id), "content");
  await end();
});

test("nothing of the page is loaded twice, and a reload asks for the page and its settings alone", async () => {
  const { page, requests, close: end } = await open();
  await page.getByRole("heading", { name: "Say hello" }).waitFor();
  const files = requests.map((request) => new URL(request.url()).pathname).filter((path) => path.includes("/console"));
  const sent = [];
  page.on("response", async (response) => {
    const path = new URL(response.url()).pathname;
    const { responseBodySize } = await response.request().sizes();
    if (path.includes("/console") && responseBodySize > 0) sent.push(path);
  });
  await page.reload();
  await page.getByRole("heading", { name: "Say hello" }).waitFor();

  assert.deepEqual(files, [...new Set(files)]);
  assert.equal(files.filter((path) => path.endsWith(".css")).length, 1);
  assert.deepEqual(
    sent.filter((path) => path.includes("/assets/")),
    [],
  );
  await end();
});
