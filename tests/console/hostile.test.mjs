// A hostile corpus on every page of the console: no script, no request to another origin, no overflow.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { URL_ } from "./api.mjs";
import { close, hasOverflow, LOOKS, prepare, shot, show } from "./browser.mjs";
import { findIntruders, findTurned, makeHostile, NAME, runsOf, TAIL } from "./hostile.mjs";
import { send } from "./session.mjs";

const { api, open } = await prepare("hostile", ["use", "knowledge:write", "registry:write", "admin"]);
let made;

before(async () => {
  made = await makeHostile(api);
});

after(async () => {
  await close();
  made?.stop();
});

const part = encodeURIComponent;
const sessions = () => `agents/${made.agent}/sessions`;
const store = () => `knowledge/stores/${made.store.id}`;

// What leads to the texts that a page shows only on demand.
const press = (name) => async (page) => page.getByRole("button", { name }).first().click();
const openModelInput = async (page) => {
  await openDetails(page);
  await press("What the model saw")(page);
  await page.getByText("Tools offered").first().waitFor();
};
const findUser = async (page) => {
  await page.getByLabel("Id of the end user").fill(made.user);
  await page.keyboard.press("Enter");
  await page.getByRole("cell", { name: "response" }).first().waitFor();
};
const search = async (page) => {
  await page.getByLabel("Search for").fill("Llamas");
  await page.keyboard.press("Enter");
  await page.getByLabel("Rank 1").first().waitFor({ state: "attached" });
};
const waitForClient = async (page) => {
  await send(page, `call: ask {${JSON.stringify(NAME)}: ${JSON.stringify(NAME)}}`);
  await page.getByRole("form", { name: "What the run waits for" }).waitFor();
};

// The path of each page, and what is done there.
const PAGES = {
  start: [() => ""],
  agents: [() => "agents", press(/^Delete/)],
  agent: [() => `agents/${made.agent}`],
  "agent form": [() => `agents/new?copy=${made.agent}`],
  sessions: [sessions],
  session: [() => `${sessions()}/${made.session}`],
  "a form of calls": [() => `${sessions()}/${made.asking}`, waitForClient],
  turns: [() => `${sessions()}/${made.session}/turns`],
  turn: [() => `${sessions()}/${made.session}/turns/${made.turn}`, openModelInput],
  responses: [() => "responses"],
  response: [() => `responses/${made.response}`, openModelInput],
  "failed response": [() => `responses/${made.failed}`],
  "response with an approval": [() => `responses/${made.approval}`],
  "new response": [() => "responses/new"],
  "response that continues": [() => `responses/new?previous=${made.approval}`],
  conversations: [() => "conversations"],
  conversation: [() => `conversations/${made.conversation}`],
  chats: [() => "chats"],
  chat: [() => `chats/${made.chat}`],
  stores: [() => "knowledge"],
  files: [() => "knowledge/files", press(/^Delete/)],
  store: [store, press("Delete")],
  search: [() => `${store()}/search`, search],
  tools: [() => "tools"],
  toolgroup: [() => `tools/${part(made.group)}`, press("Remove")],
  tool: [() => `tools/${part(made.group)}/book`],
  models: [() => "models"],
  providers: [() => "models/providers"],
  shields: [() => "models/shields"],
  usage: [() => "usage"],
  keys: [() => "keys", press(/^Revoke <img/)],
  runs: [() => "runs", press(/^Stop turn/)],
  "end users": [() => "users", findUser],
};

test("hostile texts are texts on each page", async (context) => {
  const { page, problems, close: end } = await open(LOOKS[0]);
  await page.route("**/v1/admin/runs?*", (route) => route.fulfill({ json: runsOf(made) }));
  for (const [name, [path, act]] of Object.entries(PAGES)) {
    await context.test(name, async () => {
      problems.length = 0;
      await show(page, LOOKS[0]);
      await page.goto(`${URL_}/prod/console/${path()}`);
      await page.getByRole("heading", { level: 1 }).first().waitFor();
      await page.waitForFunction(() => document.querySelector(".skeleton") === null);
      await act?.(page);
      await openDetails(page);
      for (const look of LOOKS) {
        await show(page, look);
        await shot(page, `hostile-${name}-${look.size}`);
        assert.deepEqual(await page.evaluate(findIntruders), []);
        assert.deepEqual(await page.evaluate(findTurned, TAIL), []);
        assert.equal(await hasOverflow(page), false, `the page is wider than the ${look.size}`);
      }
      assert.deepEqual(problems, []);
    });
  }
  await end();
});

// Open what can be opened, and what is inside of it.
async function openDetails(page) {
  for (let depth = 0; depth < 2; depth += 1) {
    await page.evaluate(async () => {
      const closed = [...document.querySelectorAll("details:not([open]) > summary")].slice(0, 20);
      for (const summary of closed) summary.click();
      await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
    });
  }
}
