// Usage, budgets, keys, running runs, stops and end users.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { Api, createKey, URL_ } from "./api.mjs";
import { check, close, LOOKS, open as openWith, prepare, readClipboard, shot, violations } from "./browser.mjs";

const { key, api, open } = await prepare("steer");
const HOSTILE = "<img src=https://elsewhere.example/x onerror=alert(1)>\u202eevil";
let spender;

before(async () => {
  spender = await api.call("POST", "/v1/admin/keys", {
    name: HOSTILE,
    budgets: { dollars_per_month: 2, tokens_per_minute: 100_000 },
  });
  await api.call("POST", "/v1/admin/keys", {
    name: "Shop",
    subject: "shop@example.com",
    scopes: ["use", "knowledge:write"],
    models: ["scripted/*"],
    budgets: { dollars_per_month: 500, requests_per_minute: 60 },
    expires_at: Math.floor(Date.now() / 1000) + 30 * 86_400,
  });
  for (const each of [key, spender.key]) {
    await api.respond({ input: "Hello" }, { authorization: `Bearer ${each}` });
  }
});

after(close);

// Sums of the days that a request asks for, as if there had been work for months.
function sumsOf(url) {
  const query = new URL(url).searchParams;
  const [start, end] = ["start", "end"].map((name) => Date.parse(query.get(name)));
  const ids = query.getAll("group_by").includes("key")
    ? [spender.id, "b".repeat(32), "c".repeat(32), "d".repeat(32), "e".repeat(32), ""]
    : [""];
  const data = [];
  for (let at = start; at <= end; at += 86_400_000) {
    const day = new Date(at).toISOString().slice(0, 10);
    const number = at / 86_400_000;
    for (const [index, key_id] of ids.entries()) {
      const input_tokens = Math.round((400_000 * (1.2 + Math.sin(number / 3 + index))) / (index + 1));
      data.push({
        day,
        key_id,
        runs: 40 + (number % 7),
        input_tokens,
        cached_tokens: Math.round(input_tokens / 3),
        output_tokens: Math.round(input_tokens / 9),
        dollars: input_tokens / 900_000,
      });
    }
  }
  return { object: "list", data };
}

for (const { size, viewport, scheme } of LOOKS) {
  test(`tokens and dollars are charts by day and key, with tables, ${size}`, async () => {
    const { page, problems, close: end } = await open({ viewport, scheme, path: "/console/usage" });
    const asked = [];
    await page.route("**/v1/usage?*", (route) => {
      asked.push(new URL(route.request().url()).searchParams);
      return route.fulfill({ json: sumsOf(route.request().url()) });
    });
    await page.reload();
    await page.getByRole("img", { name: /Tokens per day/ }).waitFor();
    await page.getByText("90 days").click();
    await page.getByText("By key").click();
    await page.getByRole("heading", { name: "Keys", exact: true }).waitFor();
    await page.locator(".chart path").first().waitFor();

    assert.equal(await page.locator(".chart path").count(), 8);
    assert.match(await page.getByRole("table", { name: "Tokens and dollars: Keys" }).innerText(), /onerror=alert/);
    const days = asked
      .filter((query) => query.getAll("group_by").join() === "day,key")
      .map((query) => (Date.parse(query.get("end")) - Date.parse(query.get("start"))) / 86_400_000 + 1);
    assert.ok(days.every((count) => count <= 31));
    assert.ok(days.includes(28));
    await check(page, problems, `usage-${size}`);
    await end();
  });

  test(`keys are listed with their rights, limits and end, ${size}`, async () => {
    const { page, problems, close: end } = await open({ viewport, scheme, path: "/console/keys" });
    await page.getByText("$500.00 a month").first().waitFor();

    assert.equal(await page.locator(".table img").count(), 0);
    assert.ok(await page.getByText("of shop@example.com").first().isVisible());
    await check(page, problems, `keys-${size}`);
    await page.getByRole("button", { name: "Create a key" }).click();
    await page.getByRole("dialog", { name: "Create a key" }).waitFor();
    await check(page, problems, `key-form-${size}`);
    await end();
  });

  test(`what runs can be stopped, and the stop is lifted, ${size}`, async () => {
    const session = "01a205ba-0a96-7000-8e02-ddb6826021fa";
    const now = Math.floor(Date.now() / 1000);
    const runs = [
      {
        kind: "turn",
        id: "01a205ba-0a96-7000-8e02-ddb6826021fb",
        agent_id: "01a205ba-0a96-7000-8e02-ddb6826021fc",
        session_id: session,
        model: "openai/gpt-5-mini",
        key_id: spender.id,
        began_at: now - 95,
        until: now + 60,
      },
      {
        kind: "response",
        id: "resp_01a205ba0a9670008e02ddb6826021fd",
        conversation_id: "conv_01a205ba0a9670008e02ddb6826021fe",
        model: "scripted/demo",
        background: true,
        began_at: now - 12,
        until: now + 60,
      },
    ];
    const { page, problems, close: end } = await open({ viewport, scheme });
    await page.route("**/v1/admin/runs?*", (route) =>
      route.fulfill({ json: { object: "list", data: runs, has_more: false } }),
    );
    await page.goto(`${URL_}/prod/console/runs`);
    await page.getByText(/[1-9] min \d+ s/).waitFor();
    await page.getByText("Nothing is stopped").waitFor();
    await check(page, problems, `runs-${size}`);

    await page.getByRole("button", { name: `Stop turn ${runs[0].id}` }).click();
    await page.getByLabel(`its session ${session}`).check();
    await check(page, problems, `stop-${size}`);
    await page.getByRole("button", { name: "Stop the session" }).click();
    const lift = page.getByRole("button", {
      name: `Lift the stop of session ${session}`,
    });
    await lift.waitFor();
    const [stop] = (await api.call("GET", "/v1/admin/stop")).data;
    assert.deepEqual([stop.kind, stop.id], ["session", session]);
    await lift.click();
    await page.getByRole("dialog").getByRole("button", { name: "Lift the stop" }).click();
    await page.getByText("Nothing is stopped").waitFor();
    assert.deepEqual((await api.call("GET", "/v1/admin/stop")).data, []);
    await page.waitForFunction(() => document.activeElement.id === "stops");
    await end();
  });

  test(`an end user is found, exported and erased, ${size}`, async () => {
    const user = `ann/${size}/${scheme} <b>@example.com`;
    for (let count = 0; count < 3; count += 1) {
      await api.respond({ input: "Hello", safety_identifier: user });
    }
    const { page, problems, close: end } = await open({ viewport, scheme, path: "/console/users" });
    await page.getByLabel("Id of the end user").fill(user);
    await page.keyboard.press("Enter");
    await page.getByRole("cell", { name: "response" }).first().waitFor();
    assert.ok(!page.url().includes("ann"));
    await check(page, problems, `user-${size}`);

    const downloading = page.waitForEvent("download");
    await page.getByRole("button", { name: "Export" }).click();
    const lines = (await readFile(await (await downloading).path(), "utf8")).trim().split("\n");
    assert.equal(JSON.parse(lines.at(-1)).kind, "end");
    assert.match(lines.join(""), /You said: Hello/);

    await page.getByRole("button", { name: "Erase …" }).click();
    const erase = page.getByRole("button", { name: "Erase everything" });
    assert.equal(await erase.isDisabled(), true);
    await page.getByLabel("Type the id to confirm").fill(user);
    await check(page, problems, `erase-${size}`);
    await erase.click();
    await page.getByRole("heading", { name: "Erased", exact: true }).waitFor();
    await page.getByText("Nothing is left").waitFor();
    await check(page, problems, `erased-${size}`);
    await end();
  });
}

test("a key is created, shown once, rotated and revoked, by keyboard alone", async () => {
  const { page, problems, close: end } = await open({ path: "/console/keys" });
  const name = "Nightly <script>alert(1)</script>";
  await page.getByRole("button", { name: "Create a key" }).focus();
  await page.keyboard.press("Enter");
  await page.getByLabel("Name").focus();
  await page.keyboard.type(name);
  await page.keyboard.press("Tab");
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.type), "checkbox");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Space");
  await page.getByLabel("Dollars per month").focus();
  await page.keyboard.type("12.5");
  await page.keyboard.press("Enter");
  const secret = page.locator(".secret code");
  await secret.waitFor();
  const first = await secret.innerText();
  assert.match(first, /^stk_[0-9a-f]{32}_[0-9a-f]{64}$/);
  await shot(page, "key-secret");
  assert.deepEqual(await violations(page), []);
  await page.keyboard.press("Escape");
  await page.keyboard.press("Escape");
  assert.equal(await secret.isVisible(), true);
  await page.getByRole("button", { name: "Copy key" }).click();
  assert.equal(await readClipboard(page), first);
  await page.getByRole("button", { name: "I have stored it" }).press("Enter");
  await secret.waitFor({ state: "detached" });
  const kept = await page.evaluate(
    () => document.documentElement.outerHTML + JSON.stringify({ ...sessionStorage, ...localStorage }),
  );
  assert.ok(!kept.includes(first));
  const id = first.split("_")[1];
  const made = await api.call("GET", `/v1/admin/keys/${id}`);
  assert.deepEqual([made.name, made.scopes, made.budgets.dollars_per_month], [name, ["use", "knowledge:write"], 12.5]);

  await page.getByRole("button", { name: `Rotate ${name}` }).press("Enter");
  await page.getByLabel("The current key stops working").selectOption("In an hour");
  await page.getByRole("dialog").getByRole("button", { name: "Rotate" }).press("Enter");
  await secret.waitFor();
  const second = await secret.innerText();
  assert.notEqual(second, first);
  for (const each of [first, second]) {
    await api.call("GET", "/v1/version", undefined, {
      authorization: `Bearer ${each}`,
    });
  }
  await page.getByRole("button", { name: "I have stored it" }).press("Enter");

  await page.getByRole("dialog").waitFor({ state: "hidden" });
  const revoke = page.getByRole("button", { name: `Revoke ${name}` });
  await revoke.press("Enter");
  await page.getByRole("dialog").waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "hidden" });
  const label = await revoke.getAttribute("aria-label");
  await page.waitForFunction((text) => document.activeElement.getAttribute("aria-label") === text, label);
  await revoke.press("Enter");
  await page.getByText(id).last().waitFor();
  await shot(page, "key-revoke");
  await page.getByRole("button", { name: "Revoke the key" }).press("Enter");
  await page.getByText(`${name} is revoked`).waitFor();
  await revoke.waitFor({ state: "detached" });
  assert.ok((await api.call("GET", `/v1/admin/keys/${id}`)).revoked_at);
  await page.waitForFunction(() => document.activeElement.id === "keys");
  assert.deepEqual(problems, []);
  await end();
});

test("a repeated creation makes one key, and what was typed is kept", async () => {
  const { page, close: end } = await open({ path: "/console/keys" });
  await page.getByRole("button", { name: "Create a key" }).click();
  await page.getByLabel("Name").fill("Once only");
  await page.getByLabel("Ends").selectOption("In a week");
  // The answer is lost, after the server has made the key.
  await page.route("**/v1/admin/keys", async (route) => {
    if (route.request().method() !== "POST") return route.continue();
    await route.fetch();
    await route.abort();
  });
  await page.getByRole("button", { name: "Create", exact: true }).click();
  await page.getByText("The server does not answer.").waitFor();
  assert.equal(await page.getByLabel("Name").inputValue(), "Once only");
  await page.unroute("**/v1/admin/keys");
  await page.getByRole("button", { name: "Create", exact: true }).click();
  await page.getByText("rotate the key in the list").waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Rotate Once only" }).waitFor();

  const { data } = await api.call("GET", "/v1/admin/keys");
  assert.equal(data.filter(({ name }) => name === "Once only").length, 1);
  await end();
});

test("budgets are shown against what was spent", async () => {
  const { page, problems, close: end } = await open({ path: "/console/usage" });
  const table = page.getByRole("table", { name: /monthly budget/ });
  await table.getByText("$0.0").waitFor();
  const row = table.getByRole("row").filter({ hasText: "onerror" });

  assert.match(await row.innerText(), /\$0\.0\d+\s+\$2\.00/);
  assert.ok(Number(await row.getByRole("meter").evaluate((meter) => meter.value)) > 0);
  assert.match(await page.locator(".totals").innerText(), /Dollars\s+\$\d*\.\d*[1-9]/);
  await check(page, problems, "budgets");
  await end();
});

test("a turn that runs is listed after ten seconds, and a stop ends it", async () => {
  const agent_id = await api.createAgent({ name: "Long" });
  const session_id = await api.createSession(agent_id, "Long");
  const turn = fetch(`${URL_}/v1/agents/${agent_id}/session/${session_id}/turn`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ stream: true, messages: [{ role: "user", content: "long: 3000 words" }] }),
  }).then((response) => response.text());
  const { page, problems, close: end } = await open({ path: "/console/runs" });
  await page.getByText(`session ${session_id}`).waitFor();
  await shot(page, "running");
  await page.getByRole("button", { name: /^Stop turn/ }).click();
  await page.getByRole("button", { name: "Stop the turn" }).click();

  assert.match(await turn, /stopped/);
  await page.getByRole("button", { name: "Refresh" }).click();
  await page.getByText(`session ${session_id}`).waitFor({ state: "hidden" });
  await page.getByRole("button", { name: /^Lift the stop of turn/ }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Lift the stop" }).click();
  await page.getByText("Nothing is stopped").waitFor();
  assert.deepEqual(problems, []);
  await end();
});

test("a tenant is stopped only after its name was typed", async () => {
  const { page, close: end } = await openWith({ key: process.env.STINT_KEY, path: "/console/runs" });
  await page.getByLabel("Tenant", { exact: true }).fill("elsewhere");
  await page.getByRole("button", { name: "Show" }).click();
  await page.getByRole("button", { name: "Stop by id" }).click();
  await page.getByLabel("What").selectOption("Tenant");
  const stop = page.getByRole("button", { name: "Stop the tenant" });
  await page.getByLabel("Type the tenant to confirm").fill("elsewher");
  assert.equal(await stop.isDisabled(), true);
  await page.getByLabel("Type the tenant to confirm").fill("elsewhere");
  await shot(page, "stop-tenant");
  await stop.click();
  await page.getByRole("button", { name: "Lift the stop of tenant elsewhere" }).waitFor();

  const elsewhere = new Api(await createKey("elsewhere", ["admin"]));
  assert.equal((await elsewhere.call("GET", "/v1/admin/stop")).data.length, 1);
  assert.deepEqual((await api.call("GET", "/v1/admin/stop")).data, []);
  await end();
});

test("an error is shown in the dialog, which keeps what was typed", async () => {
  const { page, close: end } = await open({ path: "/console/runs" });
  await page.getByRole("button", { name: "Stop by id" }).click();
  await page.getByLabel("Id", { exact: true }).fill("no-session");
  await page.getByRole("button", { name: "Stop the session" }).click();
  await page.getByText("is not the id of a session").waitFor();

  assert.equal(await page.getByLabel("Id", { exact: true }).inputValue(), "no-session");
  await end();
});

test("an export that breaks off is not saved", async () => {
  const user = "broken@example.com";
  await api.respond({ input: "Hello", user });
  const { page, close: end } = await open({ path: "/console/users" });
  await page.getByLabel("Id of the end user").fill(user);
  await page.keyboard.press("Enter");
  await page.route("**/v1/admin/users/**export=true", (route) => route.fulfill({ body: '{"kind": "response"}\n' }));
  await page.getByRole("button", { name: "Export" }).click();
  await page.getByText("The export broke off").waitFor();
  await end();
});

test("a key without the scope admin is offered none of it, and a page says which scope it needs", async () => {
  const { page, problems, close: end } = await open({ key: spender.key, path: "/console/keys" });
  await page.getByText("This page needs the scope admin").waitFor();

  const pages = await page.getByRole("navigation").first().innerText();
  assert.ok(pages.includes("Usage"));
  for (const title of ["Keys", "Running", "End users"]) assert.ok(!pages.includes(title));
  await check(page, problems, "no-scope");
  await page.getByRole("link", { name: "Usage" }).click();
  await page.getByText("What you have used").waitFor();
  assert.equal(await page.getByText("Budgets of").count(), 0);
  await end();
});

test("the rows of a list show their JSON", async () => {
  const { page, problems, close: end } = await open();
  for (const path of ["keys", "models", "models/providers"]) {
    await page.goto(`${URL_}/prod/console/${path}`);
    await page.locator("summary", { hasText: "JSON and code" }).click();
    assert.match(await page.locator("figure.json pre").last().innerText(), /^\[\n {2}\{/);
  }
  assert.deepEqual(problems, []);
  await end();
});

test("budgets whose keys cannot be read say so, and are read again", async () => {
  const { page, close: end } = await open();
  let isDown = true;
  await page.route("**/v1/admin/keys*", (route) =>
    isDown ? route.fulfill({ status: 503, json: { error: { message: "Down for a moment." } } }) : route.continue(),
  );
  await page.goto(`${URL_}/prod/console/usage`);
  await page.getByText("Down for a moment.").waitFor();
  isDown = false;
  await page.getByRole("alert").getByRole("button").first().click();
  await page.getByRole("table", { name: /monthly budget/ }).waitFor();
  await end();
});

test("a server without sign-in, or without sums, says what to do", async () => {
  const { page, close: end } = await open();
  await page.route("**/console/config.json", async (route) => {
    const response = await route.fetch();
    await route.fulfill({
      response,
      json: { ...(await response.json()), auth: "none" },
    });
  });
  await page.route("**/v1/usage?*", (route) =>
    route.fulfill({
      status: 400,
      json: { error: { code: "not_enabled", message: "Usage is not summed." } },
    }),
  );
  for (const [path, words] of [
    ["keys", "make run AUTH=on"],
    ["runs", "make run AUTH=on"],
    ["usage", "STINT_USAGE_SUMS=true make run"],
  ]) {
    await page.goto(`${URL_}/prod/console/${path}`);
    await page.getByText(words).waitFor();
    assert.deepEqual(await violations(page), []);
    await shot(page, `needs-${path}`);
  }
  await end();
});
