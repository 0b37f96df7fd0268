// A page of the console in Chromium, with everything that must not happen in it.
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { createRequire } from "node:module";
import { readFile } from "node:fs/promises";
import { chromium } from "playwright-core";

export const URL_ = process.env.STINT_URL;
export const KEY = process.env.STINT_KEY;
export const DESKTOP = { width: 1280, height: 800 };
export const PHONE = { width: 390, height: 844 };

const AXE = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

let browser;

export async function launch() {
  browser ??= await chromium.launch({
    executablePath: process.env.CHROMIUM,
    args: ["--no-sandbox"],
  });
  return browser;
}

export async function close() {
  await browser?.close();
}

// Open a page in a context of its own. `problems` has errors, violations of the policy, and requests to other origins.
// `stage` is the first part of the path.
export async function open({
  viewport = DESKTOP,
  scheme = "light",
  key = KEY,
  path = "/console",
  stage = "/prod",
} = {}) {
  const context = await (await launch()).newContext({ viewport, colorScheme: scheme, reducedMotion: "reduce" });
  await context.grantPermissions(["clipboard-read", "clipboard-write"], {
    origin: URL_,
  });
  if (key) {
    await context.addInitScript((value) => {
      if (!sessionStorage.getItem("test")) sessionStorage.setItem("stint.key", value);
      sessionStorage.setItem("test", "1");
    }, key);
  }
  const page = await context.newPage();
  const problems = [];
  const requests = [];
  page.on("pageerror", (error) => problems.push(`error: ${error.message}`));
  page.on("console", (message) => {
    if (/Content Security Policy|Trusted|Uncaught/i.test(message.text())) problems.push(message.text());
  });
  page.on("request", (request) => {
    requests.push(request);
    const { protocol, origin } = new URL(request.url());
    if (!["data:", "blob:"].includes(protocol) && origin !== URL_) problems.push(`request to ${request.url()}`);
  });
  await page.goto(`${URL_}${stage}${path}`);
  return { page, problems, requests, close: () => context.close() };
}

// Return a new key of a tenant.
export async function createKey(tenant, scopes = ["use", "knowledge:write", "admin"]) {
  const headers = { authorization: `Bearer ${KEY}`, "content-type": "application/json" };
  const body = JSON.stringify({ tenant, name: tenant, scopes });
  const answer = await fetch(`${URL_}/v1/admin/keys`, { method: "POST", headers, body });
  if (!answer.ok) throw new Error(await answer.text());
  return (await answer.json()).key;
}

// Make an agent, unless there is one, for tests that begin with it.
export async function ensureAgent() {
  const headers = {
    authorization: `Bearer ${KEY}`,
    "content-type": "application/json",
  };
  const { data } = await (await fetch(`${URL_}/v1/agents`, { headers })).json();
  if (data.length > 0) return;
  const agent_config = {
    name: "Prepared",
    model: "scripted/demo",
    instructions: "",
  };
  await fetch(`${URL_}/v1/agents`, {
    method: "POST",
    headers,
    body: JSON.stringify({ agent_config }),
  });
}

// Return the rules of axe-core that the page violates, with the elements.
export async function violations(page) {
  await page.evaluate(AXE);
  const { violations: found } = await page.evaluate(() =>
    globalThis.axe.run(document, {
      runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
    }),
  );
  return found.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(" | ")}`);
}

// Return whether the page is wider than the screen.
export async function hasOverflow(page) {
  return page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth);
}

export async function shot(page, name) {
  if (!process.env.SHOTS) return;
  await mkdir(process.env.SHOTS, { recursive: true });
  await page.evaluate(() => {
    document.activeElement?.blur();
    window.scrollTo(0, 0);
  });
  await page.screenshot({
    path: join(process.env.SHOTS, `${name}.png`),
    fullPage: true,
  });
}
