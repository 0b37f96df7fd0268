// A page of the console in Chromium, with everything that must not happen in it.
import assert from "node:assert/strict";
import { mkdir, readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { chromium } from "playwright-core";
import { Api, createKey, until, URL_ } from "./api.mjs";

export const DESKTOP = { width: 1280, height: 800 };
export const PHONE = { width: 390, height: 844 };
// Each size has one of the schemes, so that every page is seen in both.
export const LOOKS = [
  { size: "desktop", viewport: DESKTOP, scheme: "light" },
  { size: "phone", viewport: PHONE, scheme: "dark" },
];
// Refusals of requests that a later one overcomes, with what the page says.
export const REFUSALS = [
  [
    (route) =>
      route.fulfill({ status: 429, headers: { "retry-after": "30" }, json: { error: { message: "Slow down." } } }),
    /Try again in (30|29) s/,
  ],
  [(route) => route.abort(), "The server does not answer."],
];
// The longest wait for a state, in milliseconds. It is long, because other files run at the same time.
const LONGEST = 60_000;

const AXE = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
// Debian's options ask for a graphics processor, which would be emulated, and for extensions.
const ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-software-rasterizer", "--disable-extensions"];

let browser;

function launch() {
  browser ??= chromium.launch({ executablePath: process.env.CHROMIUM, args: ARGUMENTS });
  return browser;
}

export async function close() {
  await (await browser)?.close();
}

// Return what a file of tests needs: a key of a tenant of its own, the API with this key, and how to open a page with it.
export async function prepare(tenant, scopes) {
  const key = await createKey(tenant, scopes);
  return { key, api: new Api(key), open: (options) => open({ key, ...options }) };
}

// Open a page in a context of its own. `problems` has errors, violations of the policy, and requests to other origins.
// `stage` is the first part of the path.
export async function open({ key, viewport = DESKTOP, scheme = "light", path = "/console", stage = "/prod" }) {
  const context = await (await launch()).newContext({ viewport, colorScheme: scheme, reducedMotion: "reduce" });
  await context.grantPermissions(["clipboard-read", "clipboard-write"], { origin: URL_ });
  context.setDefaultTimeout(LONGEST);
  if (key) await context.addInitScript(signIn, key);
  const page = await context.newPage();
  const problems = [];
  const requests = [];
  page.on("pageerror", (error) => problems.push(`error: ${error.message}`));
  page.on("dialog", (dialog) => {
    problems.push(`dialog: ${dialog.message()}`);
    dialog.dismiss().catch(() => {});
  });
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

// Put the key where the console keeps it, once: a page that signs out has none after a reload.
function signIn(key) {
  if (!sessionStorage.getItem("test")) sessionStorage.setItem("stint.key", key);
  sessionStorage.setItem("test", "1");
}

// Check what holds for every page, and take a picture of it.
export async function check(page, problems, name) {
  assert.deepEqual(await violations(page), []);
  assert.equal(await hasOverflow(page), false, "the page is wider than the screen");
  if (name) await shot(page, name);
  assert.deepEqual(problems, []);
}

// Show an open page at another size and in another scheme.
export async function show(page, { viewport, scheme }) {
  await page.setViewportSize(viewport);
  await page.emulateMedia({ colorScheme: scheme, reducedMotion: "reduce" });
}

// Return the rules of axe-core that the page violates, with the elements.
export async function violations(page) {
  if (!(await page.evaluate(() => "axe" in globalThis))) await page.evaluate(AXE);
  const found = await page.evaluate(async (rules) => {
    const { violations: list } = await globalThis.axe.run(document, { runOnly: rules, resultTypes: ["violations"] });
    return list.map(({ id, nodes }) => ({ id, elements: nodes.map((node) => node.html) }));
  }, RULES);
  return found.map(({ id, elements }) => `${id}: ${elements.join(" | ")}`);
}

export async function hasOverflow(page) {
  return page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth);
}

// Wait until a locator has so many elements.
export async function waitForCount(locator, count) {
  await until(
    () => locator.count(),
    (found) => found === count,
  );
}

// Press Tab until the element with a name has the focus. A focused element must be seen.
export async function tabTo(page, name) {
  for (let presses = 0; presses < 60; presses += 1) {
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

export async function readClipboard(page) {
  return page.evaluate(() => navigator.clipboard.readText());
}

export async function shot(page, name) {
  if (!process.env.SHOTS) return;
  await mkdir(process.env.SHOTS, { recursive: true });
  await page.evaluate(() => {
    document.activeElement?.blur();
    window.scrollTo(0, 0);
  });
  await page.screenshot({ path: join(process.env.SHOTS, `${name}.png`), fullPage: true });
}
