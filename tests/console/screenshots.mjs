// Write the pictures of README.md and docs/console.md into a folder.
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { Api, createKey } from "./api.mjs";
import { close, open, PHONE } from "./browser.mjs";

const folder = process.argv[2];
const WAIT = { timeout: 60_000 };

await mkdir(folder, { recursive: true });
const key = await createKey("acme");
await takeSignIn();
await prepare();
await takeKnowledge();
await takeTurn();
await take("start-dark", { scheme: "dark" });
await take("start-phone", { viewport: PHONE });
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

// The only turn of the only session.
async function takeTurn() {
  const api = new Api(key);
  const [{ agent_id }] = (await api.call("GET", "/v1/agents")).data;
  const [{ session_id }] = (await api.call("GET", `/v1/agents/${agent_id}/sessions`)).data;
  const [{ turn_id }] = (await api.call("GET", `/v1/agents/${agent_id}/session/${session_id}/turns`)).data;
  const path = `/console/agents/${agent_id}/sessions/${session_id}/turns/${turn_id}`;
  const { page, close: end } = await open({ key, path });
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
