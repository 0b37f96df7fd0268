// The frame of the console, sign-in, and the three steps of its first page.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import {
  close,
  createKey,
  DESKTOP,
  ensureAgent,
  hasOverflow,
  KEY,
  open,
  PHONE,
  shot,
  URL_,
  violations,
} from "./browser.mjs";

after(close);

// A tenant without an agent, and one whose steps are done in the order of the tests.
const EMPTY = await createKey("empty");
const STEPS = await createKey("steps");

const SIZES = { desktop: DESKTOP, phone: PHONE };
const INSIDE = { timeout: 20_000 };

for (const [size, viewport] of Object.entries(SIZES)) {
  for (const scheme of ["light", "dark"]) {
    test(`the first page opens without violations, ${size}, ${scheme}`, async () => {
      const { page, problems, close: end } = await open({ viewport, scheme, key: EMPTY });
      await page.getByRole("heading", { name: "Say hello" }).waitFor(INSIDE);

      assert.deepEqual(await violations(page), []);
      assert.equal(await hasOverflow(page), false);
      await shot(page, `start-${size}-${scheme}`);
      assert.deepEqual(problems, []);
      await end();
    });

    test(`sign-in says that a key is wrong, ${size}, ${scheme}`, async () => {
      const { page, problems, close: end } = await open({ viewport, scheme, key: null });
      await page.getByLabel("API key").fill("stk_wrong");
      await page.getByRole("button", { name: "Sign in" }).click();
      await page.getByText("This key is wrong, expired or revoked.").waitFor(INSIDE);

      assert.equal(await page.getByLabel("API key").inputValue(), "stk_wrong");
      assert.deepEqual(await violations(page), []);
      await shot(page, `sign-in-${size}-${scheme}`);
      assert.deepEqual(problems, []);
      await end();
    });
  }
}

test("a right key signs in, and the banner shows tenant and scopes", async () => {
  const { page, requests, close: end } = await open({ key: null });
  await page.getByLabel("API key").fill(KEY);
  await page.keyboard.press("Enter");
  await page.getByText("Tenant default").waitFor(INSIDE);

  assert.equal(await page.getByRole("banner").getByText("knowledge:write").count(), 1);
  await page.reload();
  await page.getByText("Tenant default").waitFor(INSIDE);
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
    const { page, close: end } = await open({ key: await createKey("other", [scope]) });
    await page.getByText("Tenant other").waitFor(INSIDE);
    await page.getByText(words).waitFor(INSIDE);

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
    page.getByRole("link", { name: "API reference" }).click(INSIDE),
  ]);

  await reference.getByText("/v1/whoami").first().waitFor(INSIDE);
  await end();
});

test("the three steps make an agent, talk to it, and add a document", async () => {
  const { page, problems, close: end } = await open({ key: STEPS });
  await page.getByRole("button", { name: "Make the agent" }).click(INSIDE);
  await page.getByText("scripted/demo").waitFor(INSIDE);

  await page.getByLabel("Message").fill("Hello **you** <img src=https://elsewhere.example/x.png onerror=alert(1)>");
  await page.getByRole("button", { name: "Send" }).click();
  await page.getByText(/\d+ tokens/).waitFor(INSIDE);
  const answer = page.locator(".message-of-agent");
  assert.equal(await answer.locator("strong").innerText(), "you");
  assert.equal(await answer.locator("img").count(), 0);
  assert.match(await answer.innerText(), /<img src=/);

  await page.getByRole("button", { name: "Add the document" }).click();
  await page.getByText("1 of 1 can be searched").waitFor({ timeout: 40_000 });
  assert.equal(await page.locator(".step.is-done").count(), 3);
  assert.deepEqual(await violations(page), []);
  await shot(page, "steps-desktop-light");
  assert.deepEqual(problems, []);
  await end();
});

for (const [size, viewport, scheme] of [
  ["desktop", DESKTOP, "dark"],
  ["phone", PHONE, "light"],
  ["phone", PHONE, "dark"],
]) {
  test(`a later visit shows what there is, ${size}, ${scheme}`, async () => {
    const { page, problems, close: end } = await open({ viewport, scheme, key: STEPS });
    await page.getByText("1 of 1 can be searched").waitFor(INSIDE);
    await page.getByLabel("Message").fill("Hello");
    await page.getByRole("button", { name: "Send" }).click();
    await page.getByText(/\d+ tokens/).waitFor(INSIDE);
    assert.equal(await page.getByLabel("Message").inputValue(), "");

    assert.deepEqual(await violations(page), []);
    assert.equal(await hasOverflow(page), false);
    await shot(page, `steps-${size}-${scheme}`);
    assert.deepEqual(problems, []);
    await end();
  });
}

test("a reload in the middle of a turn shows it to its end", async () => {
  await ensureAgent();
  const { page, close: end } = await open();
  await page.getByLabel("Message").fill(`count ${"one two three ".repeat(30)}`, INSIDE);
  await page.getByRole("button", { name: "Send" }).click();
  await page.locator(".message-of-agent .markdown").waitFor(INSIDE);
  await page.reload();
  await page.locator(".message-of-agent .markdown").waitFor(INSIDE);
  await page.getByText(/\d+ tokens/).waitFor(INSIDE);

  assert.match(await page.locator(".message-of-agent").innerText(), /one two three/);
  await end();
});

test("a stream that breaks goes on where it was", async () => {
  await ensureAgent();
  const { page, close: end } = await open();
  await page.getByRole("button", { name: "Send" }).waitFor(INSIDE);
  // The first answer ends after its second event, as if the connection had died.
  await page.route("**/turn", async (route) => {
    const response = await route.fetch();
    const text = await response.text();
    const cut = text.split("\n\n").slice(0, 4).join("\n\n") + "\n\n";
    await route.fulfill({ response, body: cut });
  });
  await page.getByRole("button", { name: "Send" }).click();
  await page.getByText(/\d+ tokens/).waitFor(INSIDE);

  assert.match(await page.locator(".message-of-agent").innerText(), /You said: Hello/);
  await end();
});

test("a key that expires is asked for again, and what was typed is kept", async () => {
  await ensureAgent();
  const { page, close: end } = await open();
  await page.getByLabel("Message").fill("Do not lose this", INSIDE);
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
  await page.getByLabel("API key").fill(KEY);
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").waitFor({ state: "hidden" });
  await page.getByText("The key is not accepted").waitFor({ state: "hidden" });
  assert.equal(await page.getByLabel("Message").inputValue(), "Do not lose this");
  await page.getByRole("button", { name: "Send" }).click();
  await page.getByText(/\d+ tokens/).waitFor(INSIDE);
  await end();
});

test("a 429 shows the time to wait, and a dead server says so", async () => {
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
  ]) {
    const { page, close: end } = await open({ key: null });
    await page.route("**/v1/models", fulfil);
    await page.getByLabel("API key").fill(KEY);
    await page.keyboard.press("Enter");
    await page.getByText(words).waitFor(INSIDE);
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
    await page.getByText(words).waitFor(INSIDE);
    assert.match(page.url(), /\/console/);
    assert.deepEqual(problems, []);
    await end();
  }
});

test("requests can be copied as commands, without the key", async () => {
  await ensureAgent();
  const { page, close: end } = await open();
  await page.getByLabel("Message").fill("It's me", INSIDE);
  await page.getByRole("button", { name: "Send" }).click();
  await page.getByText(/\d+ tokens/).waitFor(INSIDE);
  await page.getByRole("button", { name: "Copy as curl" }).first().click();
  const curl = await page.evaluate(() => navigator.clipboard.readText());
  await page.getByRole("button", { name: "Copy as Python" }).first().click();
  const python = await page.evaluate(() => navigator.clipboard.readText());

  assert.match(curl, /^curl -sS \\\n {2}'http.*\$STINT_API_KEY/s);
  assert.match(curl, /It'\\''s me/);
  assert.match(python, /"stream": False/);
  assert.ok(!`${curl}${python}`.includes(KEY));
  await page.getByText("Python code copied").waitFor();
  await end();
});

test("the navigation of a phone opens, and the keyboard reaches the content", async () => {
  const { page, close: end } = await open({ viewport: PHONE });
  await page.getByRole("button", { name: "Menu" }).click(INSIDE);
  await page.getByRole("dialog", { name: "Menu" }).waitFor();
  assert.deepEqual(await violations(page), []);
  await shot(page, "menu-phone");
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "hidden" });
  await page.reload();
  await page.getByRole("heading", { name: "Start" }).waitFor(INSIDE);
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  assert.equal(await page.evaluate(() => document.activeElement.id), "content");
  await end();
});

test("nothing of the page is loaded twice, and a reload asks for the page and its settings alone", async () => {
  const { page, requests, close: end } = await open();
  await page.getByRole("heading", { name: "Say hello" }).waitFor(INSIDE);
  const files = requests.map((request) => new URL(request.url()).pathname).filter((path) => path.includes("/console"));
  const sent = [];
  page.on("response", async (response) => {
    const path = new URL(response.url()).pathname;
    const { responseBodySize } = await response.request().sizes();
    if (path.includes("/console") && responseBodySize > 0) sent.push(path);
  });
  await page.reload();
  await page.getByRole("heading", { name: "Say hello" }).waitFor(INSIDE);

  assert.deepEqual(files, [...new Set(files)]);
  assert.equal(files.filter((path) => path.endsWith(".css")).length, 1);
  assert.deepEqual(
    sent.filter((path) => path.includes("/assets/")),
    [],
  );
  await end();
});
