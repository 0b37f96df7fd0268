// Write the pictures of README.md and docs into a folder. The server has the tool of docs/tutorial.md.
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { Api, createKey, MODEL } from "./api.mjs";
import { close, open, PHONE } from "./browser.mjs";

const folder = process.argv[2];
const WAIT = { timeout: 60_000 };

await mkdir(folder, { recursive: true });
const key = await createKey("acme");
const shopKey = await createKey("shop", ["use", "registry:write", "admin"]);
await takeSignIn();
await prepare();
await takeKnowledge();
await take("start-dark", { scheme: "dark" });
await take("start-phone", { viewport: PHONE });
await takeTutorial();
await close();

async function takeSignIn() {
  const { page, close: end } = await open({ key: null });
  await page.getByLabel("API key").waitFor(WAIT);
  await write(page, "sign-in");
  await end();
}

// Do the three steps of the first page, as a person would.
async function prepare() {
  const { page, close: end } = await open({ key });
  await page.getByLabel("Name").fill("Shop assistant", WAIT);
  await page.getByRole("button", { name: "Make the agent" }).click();
  await page.getByLabel("Message").fill("When do you open on Saturdays?", WAIT);
  await page.getByRole("button", { name: "Send" }).click();
  await page.getByText(/\d+ tokens/).waitFor(WAIT);
  await page.getByRole("button", { name: "Add the document" }).click();
  await page.getByText("1 of 1 can be searched").waitFor(WAIT);
  await write(page, "start");
  await end();
}

async function takeKnowledge() {
  const { page, close: end } = await open({ key, path: "/console/knowledge" });
  await page.getByRole("row").nth(1).waitFor(WAIT);
  await write(page, "knowledge");
  await end();
}

// The agent of the tutorial, asked for two orders in the console.
async function takeTutorial() {
  const api = new Api(shopKey);
  const order = { type: "integer", description: "Number of the order" };
  const parameters = { type: "object", required: ["order"], properties: { order } };
  const tool = { name: "order_status", description: "Return the status of an order.", function: "order-status" };
  const args = { tools: [{ ...tool, parameters }] };
  await api.call("POST", "/v1/toolgroups", { toolgroup_id: "shop", provider_id: "lambda-function", args });
  const settings = { model: MODEL, instructions: "Answer briefly.", toolgroups: ["shop"] };
  const agent_config = { name: "Shop assistant", ...settings };
  const { agent_id } = await api.call("POST", "/v1/agents", { agent_config });
  const { page, close: end } = await open({ key: shopKey, path: `/console/agents/${agent_id}` });
  await page.getByLabel("Name of the session").fill("orders", WAIT);
  await page.getByRole("button", { name: "Talk in a new session" }).click();
  for (const [place, number] of [18, 17].entries()) {
    await page.getByRole("textbox", { name: "Message" }).fill(`What is the order_status of order ${number}?`, WAIT);
    await page.getByRole("button", { name: "Send", exact: true }).click();
    await page
      .getByText(/\d+ tokens/)
      .nth(place)
      .waitFor(WAIT);
  }
  await write(page, "talk");
  await end();
  const [{ session_id }] = (await api.call("GET", `/v1/agents/${agent_id}/sessions`)).data;
  const turns = (await api.call("GET", `/v1/agents/${agent_id}/session/${session_id}/turns`)).data;
  await takeTimeline(shopKey, `/console/agents/${agent_id}/sessions/${session_id}/turns/${turns[0].turn_id}`);
}

async function takeTimeline(shownKey, path) {
  const { page, close: end } = await open({ key: shownKey, path });
  await page.getByRole("heading", { level: 2 }).first().waitFor(WAIT);
  await page.waitForFunction(() => document.querySelector(".skeleton") === null, undefined, WAIT);
  await write(page, "turn");
  await end();
}

async function take(name, options) {
  const { page, close: end } = await open({ key, ...options });
  await page.getByText("1 of 1 can be searched").waitFor(WAIT);
  await write(page, name);
  await end();
}

async function write(page, name) {
  await page.evaluate(() => {
    document.activeElement?.blur();
    window.scrollTo(0, 0);
  });
  await page.screenshot({ path: join(folder, `${name}.png`) });
}
