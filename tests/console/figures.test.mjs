// Figures of the page, which are printed, and the work that it does for each event of a stream.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, test } from "node:test";
import { close, ensureAgent, KEY, open, PHONE, URL_ } from "./browser.mjs";

after(close);

const INSIDE = { timeout: 20_000 };
const EVENTS_PER_SECOND = 1000;
const SECONDS = 4;

// Answer the request of a turn with text that arrives in steps of 10 ms. The first event is that of a real turn.
function answerWithFlood({ perSecond, seconds }) {
  const send = window.fetch.bind(window);
  window.fetch = async (url, options) => {
    if (!/\/turn$/.test(String(url)) || options?.method !== "POST") return send(url, options);
    const start = { event: { payload: { event_type: "turn_start", turn_id: "00000000-0000-4000-8000-000000000000" } } };
    const encoder = new TextEncoder();
    let id = 0;
    const line = (document) => encoder.encode(`id: ${++id}\ndata: ${JSON.stringify(document)}\n\n`);
    const body = new ReadableStream({
      start(controller) {
        controller.enqueue(line(start));
        const began = performance.now();
        const timer = setInterval(() => {
          const due = Math.min(((performance.now() - began) / 1000) * perSecond, perSecond * seconds);
          while (id < due) {
            const delta = { type: "text", text: id % 12 ? "word " : "word.\n\n" };
            controller.enqueue(
              line({
                event: { payload: { event_type: "step_progress", step_type: "inference", step_id: "s", delta } },
              }),
            );
          }
          window.sentEvents = id;
          if (id >= perSecond * seconds) {
            clearInterval(timer);
            controller.close();
          }
        }, 10);
      },
    });
    return new Response(body, { headers: { "content-type": "text/event-stream" } });
  };
}

test(`a click has its effect while ${EVENTS_PER_SECOND} events a second arrive, and a frame is rendered once`, async (context) => {
  await ensureAgent();
  const { page, close: end } = await open({ viewport: PHONE });
  await page.getByRole("button", { name: "Send" }).waitFor(INSIDE);
  await page.evaluate(answerWithFlood, { perSecond: EVENTS_PER_SECOND, seconds: SECONDS });
  await page.evaluate(() => {
    window.frames_ = window.renders = 0;
    const next = () => (window.frames_++, requestAnimationFrame(next));
    requestAnimationFrame(next);
    new MutationObserver(() => window.renders++).observe(document.querySelector("main"), {
      subtree: true,
      childList: true,
      characterData: true,
    });
  });
  await page.getByRole("button", { name: "Send" }).click();
  await page.waitForFunction(() => window.sentEvents > 500, null, INSIDE);
  const times = [];
  for (let clicks = 0; clicks < 5; clicks++) {
    times.push(await page.evaluate(measureMenu));
    await page.waitForTimeout(200);
  }
  await page.waitForFunction((all) => window.sentEvents >= all, EVENTS_PER_SECOND * SECONDS, INSIDE);
  const { frames, renders, events } = await page.evaluate(() => ({
    frames: window.frames_,
    renders: window.renders,
    events: window.sentEvents,
  }));
  context.diagnostic(`a click to its effect: ${times.map((time) => time.toFixed(0)).join(", ")} ms`);
  context.diagnostic(`${events} events: ${renders} renders in ${frames} frames`);
  // Rendering can change the document in two steps: the state of a component, and what the browser reports of it.
  assert.ok(renders <= 2 * frames + 20, `${renders} renders in ${frames} frames`);
  await end();
});

// Open the menu by a click, wait until it is painted, close it, and return the milliseconds to the paint.
async function measureMenu() {
  const painted = () => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
  const began = performance.now();
  document.querySelector(".menu-button").click();
  while (!document.querySelector("dialog[open]")) await painted();
  await painted();
  const took = performance.now() - began;
  [...document.querySelectorAll("dialog[open] button")].at(-1).click();
  while (document.querySelector("dialog[open]")) await painted();
  return took;
}

test("a first visit loads nothing twice, and docs/costs.md has its requests and bytes", async (context) => {
  const { page, requests, close: end } = await open({ path: "/" });
  await page.getByRole("heading", { name: "Say hello" }).waitFor(INSIDE);
  await page.waitForLoadState("networkidle");
  const own = requests.filter((request) => !new URL(request.url()).pathname.includes("/v1/"));
  const paint = await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime);
  let bytes = 0;
  for (const request of own) bytes += (await request.sizes()).responseBodySize;
  context.diagnostic(`first paint: ${paint?.toFixed(0)} ms`);
  context.diagnostic(`first visit: ${own.length} requests, ${(bytes / 1000).toFixed(0)} KB`);

  const urls = own.map((request) => request.url());
  assert.deepEqual(urls, [...new Set(urls)]);
  const stated = /sends (\d+) requests, for\s+(\d+) KB/.exec(
    (await readFile(new URL("../../docs/costs.md", import.meta.url), "utf8")).replace(/\s+/g, " "),
  );
  assert.equal(own.length, Number(stated[1]));
  assert.ok(Math.abs(bytes / 1000 - Number(stated[2])) <= 5, `${bytes} bytes, and docs/costs.md says ${stated[2]} KB`);
  await end();
});

test("a list of 100 sessions appears, a page after the other", async (context) => {
  const headers = { authorization: `Bearer ${KEY}`, "content-type": "application/json" };
  const post = async (path, body) =>
    (await fetch(`${URL_}${path}`, { method: "POST", headers, body: JSON.stringify(body) })).json();
  const agent_config = { name: "Busy", model: "scripted/demo", instructions: "" };
  const { agent_id } = await post("/v1/agents", { agent_config });
  for (let number = 1; number <= 100; number++) {
    await post(`/v1/agents/${agent_id}/session`, { session_name: `Conversation ${number}.` });
  }
  const { page, close: end } = await open({ path: `/console/agents/${agent_id}/sessions` });
  await page.getByText("Conversation 100.").first().waitFor(INSIDE);
  const shown = await page.evaluate(() => performance.now());
  await page.getByRole("button", { name: "Load more" }).click(INSIDE);
  await page.getByText("Conversation 1.", { exact: true }).waitFor(INSIDE);
  const all = await page.evaluate(() => performance.now());
  context.diagnostic(`100 sessions: the first page after ${shown.toFixed(0)} ms, all after ${all.toFixed(0)} ms`);
  await end();
});
