// Toolgroups, MCP servers, a tool that is run by hand, models, providers and shields.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createKey } from "./api.mjs";
import { check, close, hasOverflow, LOOKS, prepare, shot, violations } from "./browser.mjs";
import { startMcp } from "./mcp_server.mjs";

const { api, open } = await prepare("tools", ["use", "knowledge:write", "registry:write", "admin"]);
const GROUP = "mcp::<b>hostile</b>";
const PATH = `/console/tools/${encodeURIComponent(GROUP)}`;

let mcp;

before(async () => {
  mcp = await startMcp();
  await api.call("POST", "/v1/toolgroups", {
    toolgroup_id: GROUP,
    provider_id: "model-context-protocol",
    mcp_endpoint: { uri: mcp.url },
  });
});

after(async () => {
  await close();
  mcp?.stop();
});

for (const { size, viewport, scheme } of LOOKS) {
  test(`toolgroups and the tools of a server are shown, ${size}`, async () => {
    const { page, problems, close: end } = await open({ viewport, scheme, path: "/console/tools" });
    await page.getByRole("link", { name: "builtin::rag" }).waitFor();
    await check(page, problems, `tools-${size}`);
    await page.getByRole("link", { name: GROUP }).click();
    await page.getByRole("link", { name: "book" }).waitFor();
    assert.equal(await page.getByRole("region", { name: "Tools" }).getByRole("listitem").count(), 100);
    assert.equal(await page.locator("main img, main script, main b").count(), 0);
    await page.getByLabel("Find a tool").fill("tool_299");
    await page.getByRole("link", { name: "tool_299" }).waitFor();
    await page.getByLabel("Find a tool").fill("o");
    assert.deepEqual(await violations(page), []);
    assert.equal(await hasOverflow(page), false);
    await page.getByLabel("Find a tool").fill("order");
    await shot(page, `group-${size}`);
    assert.deepEqual(problems, []);
    await end();
  });

  test(`a tool is run from a form of its schema, ${size}`, async () => {
    const { page, problems, requests, close: end } = await open({ viewport, scheme, path: `${PATH}/book` });
    await page.getByRole("button", { name: "Run", exact: true }).click();
    assert.equal(await page.getByText("This field needs a value.").count(), 1);
    await page.waitForFunction(() => document.activeElement.getAttribute("aria-invalid") === "true");
    assert.deepEqual(await violations(page), []);
    await page.getByLabel("title (required)").fill("Ships & <b>Seas</b>");
    await page.getByLabel("size (required)").selectOption("large");
    await page.getByLabel("copies").fill("two");
    await page.getByLabel("address › city").fill("Kiel");
    await page.getByLabel("tags").fill('["a"]');
    await page.getByRole("button", { name: "Run", exact: true }).click();
    await page.getByText("This is not a number.").waitFor();
    await page.getByLabel("copies").fill("2");
    await page.getByRole("button", { name: "Run", exact: true }).click();
    await page.getByLabel("Text of the result").getByText("elsewhere.example").waitFor();
    const { kwargs } = requests.findLast((request) => request.url().endsWith("/invoke")).postDataJSON();
    const given = { title: "Ships & <b>Seas</b>", size: "large", copies: 2, address: { city: "Kiel" }, tags: ["a"] };
    assert.deepEqual(kwargs, given);
    await check(page, problems, `tool-${size}`);
    await page.getByRole("button", { name: "Write JSON instead" }).click();
    assert.deepEqual(JSON.parse(await page.getByLabel("Arguments as JSON").inputValue()), given);
    await page.getByLabel("Arguments as JSON").fill('{"title": "x", "size": "small"');
    await page.getByRole("button", { name: "Run", exact: true }).click();
    await page.getByText(/This is not JSON/).waitFor();
    await page.getByLabel("Arguments as JSON").fill('{"title": "x", "size": "small"}');
    await page.getByRole("button", { name: "Back to the form" }).click();
    assert.equal(await page.getByLabel("title (required)").inputValue(), "x");
    assert.deepEqual(problems, []);
    await end();
  });

  test(`models, providers and shields are shown, ${size}`, async () => {
    const { page, problems, close: end } = await open({ viewport, scheme, path: "/console/models" });
    await page.getByText("scripted/demo", { exact: true }).first().waitFor();
    assert.equal(await page.getByText("default", { exact: true }).count(), 2);
    for (const [name, words] of [
      ["models", "384 dimensions"],
      ["providers", "works"],
      ["shields", "There is no shield yet"],
    ]) {
      await page
        .getByRole("link", { name: name.replace(/^./, (first) => first.toUpperCase()) })
        .last()
        .click();
      await page.getByText(words).first().waitFor();
      await check(page, problems, `${name}-${size}`);
    }
    assert.deepEqual(problems, []);
    await end();
  });

  test(`a toolgroup is registered and removed, ${size}`, async () => {
    const { page, problems, close: end } = await open({ viewport, scheme, path: "/console/tools" });
    await page.getByRole("button", { name: "Register a toolgroup" }).click();
    await page.getByRole("button", { name: "Register", exact: true }).click();
    await page.getByText("Enter the address of the server.").waitFor();
    assert.deepEqual(await violations(page), []);
    const name = page.getByLabel("Name", { exact: true });
    await name.fill("chemistry");
    await page.getByLabel("Provider", { exact: true }).selectOption("remote-execution");
    assert.match(await page.getByLabel("Args as JSON").inputValue(), /get_weather/);
    await page.getByLabel("Args as JSON").fill('{"tools": [{"nme": 1}]}');
    await page.getByRole("button", { name: "Register", exact: true }).click();
    await page.getByText("That did not work").waitFor();
    assert.equal(await name.inputValue(), "chemistry");
    await shot(page, `register-${size}`);
    await page.getByLabel("Provider", { exact: true }).selectOption("model-context-protocol");
    await page.getByLabel("Args as JSON").fill("");
    await page.getByLabel("Address of the server").fill(mcp.url);
    await page.getByRole("button", { name: "Register", exact: true }).click();
    await page.getByRole("heading", { name: "chemistry" }).waitFor();
    await page.getByRole("button", { name: "Remove", exact: true }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Remove" }).click();
    await page.getByRole("heading", { name: "Tools" }).waitFor();
    assert.equal(await page.getByRole("link", { name: "chemistry" }).count(), 0);
    assert.deepEqual(problems, []);
    await end();
  });
}

test("a tool that fails says why, and a long result stays usable", async () => {
  const { page, problems, close: end } = await open({ path: `${PATH}/fail` });
  await page.getByRole("button", { name: "Run", exact: true }).click();
  const result = page.getByRole("region", { name: "Result" });
  await result.getByText("failed").waitFor();
  assert.match(await result.innerText(), /No\. <img src/);
  await shot(page, "tool-failed");
  await page.goto(page.url().replace(/fail$/, "long_line"));
  await page.getByRole("button", { name: "Run", exact: true }).click();
  await page
    .getByRole("button", { name: /Show more of/ })
    .first()
    .waitFor();
  assert.ok((await page.locator("main").innerText()).length < 20_000);
  assert.equal(await hasOverflow(page), false);
  await page.goto(page.url().replace(/long_line$/, "odd"));
  await page.getByText("It has no description.").waitFor();
  assert.deepEqual(problems, []);
  await end();
});

test("a server that is away, and a toolgroup that does not exist, say so", async (context) => {
  const away = await startMcp();
  context.after(away.stop);
  const endpoint = { toolgroup_id: "away", provider_id: "model-context-protocol", mcp_endpoint: { uri: away.url } };
  await api.call("POST", "/v1/toolgroups", endpoint);
  away.stop();
  const { page, close: end } = await open({ path: "/console/tools/away" });
  await page.getByRole("alert").waitFor();
  await shot(page, "group-away");
  await page.goto(page.url().replace(/away$/, "nothing"));
  await page.getByText("Not found", { exact: true }).first().waitFor();
  await shot(page, "group-unknown");
  await end();
});

test("a key that may not register is offered no change", async () => {
  const key = await createKey("tools", ["use", "admin"]);
  const { page, close: end } = await open({ key, path: "/console/tools" });
  await page.getByRole("link", { name: GROUP }).waitFor();
  assert.equal(await page.getByRole("button", { name: "Register a toolgroup" }).count(), 0);
  await page.getByRole("link", { name: GROUP }).click();
  await page.getByRole("link", { name: "book" }).waitFor();
  assert.equal(await page.getByRole("button", { name: "Remove" }).count(), 0);
  await end();
});

test("the list of toolgroups says what the tools call", async () => {
  const { api: other, open: openOther } = await prepare("tools-targets", ["use", "registry:write", "admin"]);
  const tool = (name, target) => ({ name, description: "A tool.", parameters: { type: "object" }, ...target });
  const status = tool("a", { function: "order-status" });
  const arn = tool("b", { function: "arn:aws:lambda:eu-west-1:123456789012:function:refund-the-order" });
  const endpoint = tool("c", { url: mcp.url });
  for (const [id, provider, tools] of [
    ["one", "lambda-function", [status, tool("again", { function: "order-status" })]],
    ["two", "lambda-function", [status, arn]],
    ["web", "remote-execution", [endpoint]],
  ]) {
    await other.call("POST", "/v1/toolgroups", { toolgroup_id: id, provider_id: provider, args: { tools } });
  }
  const { page, problems, close: end } = await openOther({ path: "/console/tools" });
  for (const [id, words] of [
    ["one", "Lambda function order-status"],
    ["two", "2 Lambda functions"],
    ["web", `HTTP endpoint ${mcp.url}`],
    ["builtin::rag", "part of Stint"],
  ]) {
    const row = page.getByRole("row", { name: new RegExp(`^${id} `) });
    assert.equal(await row.getByRole("cell").last().innerText(), words);
  }
  await check(page, problems, "tools-targets");
  await page.getByLabel("Find by name").fill("refund-the");
  await page.getByRole("link", { name: "two" }).waitFor();
  assert.equal(await page.getByRole("row").count(), 2);
  await end();
});
