// Figures of the page, which are printed, and its work: one rendering per frame, a bounded number of elements.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, test } from "node:test";
import { close, hasOverflow, PHONE, prepare } from "./browser.mjs";
import { answersOf, createSession, messageOf, send } from "./session.mjs";

after(close);

const { api, open } = await prepare("figures");

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
  await api.createAgent();
  const { page, close: end } = await open({ viewport: PHONE });
  await page.getByRole("button", { name: "Send" }).waitFor();
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
  await page.waitForFunction(() => window.sentEvents > 500, null);
  const times = [];
  for (let clicks = 0; clicks < 5; clicks++) {
    times.push(await page.evaluate(measureMenu));
    await page.waitForTimeout(200);
  }
  await page.waitForFunction((all) => window.sentEvents >= all, EVENTS_PER_SECOND * SECONDS);
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
  await page.getByRole("heading", { name: "Say hello" }).waitFor();
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
  const agent = await api.createAgent({ name: "Busy" });
  for (let number = 1; number <= 100; number += 1) await api.createSession(agent, `Conversation ${number}.`);
  const { page, close: end } = await open({ path: `/console/agents/${agent}/sessions` });
  await page.getByText("Conversation 100.").first().waitFor();
  const shown = await page.evaluate(() => performance.now());
  await page.getByRole("button", { name: "Load more" }).click();
  await page.getByText("Conversation 1.", { exact: true }).waitFor();
  const all = await page.evaluate(() => performance.now());
  context.diagnostic(`100 sessions: the first page after ${shown.toFixed(0)} ms, all after ${all.toFixed(0)} ms`);
  await end();
});

// Let the page get the events of a turn from a function in the page itself. It is `script`, which gets how to emit one.
async function openScripted(script, values) {
  const opened = await open({ path: await createSession(api) });
  const { page } = opened;
  await messageOf(page).waitFor();
  await page.evaluate(() => {
    const original = window.fetch;
    const encoder = new TextEncoder();
    const start = async (controller) => {
      let number = 0;
      const emit = (payload) => {
        const data = JSON.stringify({ event: { payload } });
        controller.enqueue(encoder.encode(`id: ${number++}\ndata: ${data}\n\n`));
      };
      emit({ event_type: "turn_start", turn_id: "t" });
      await window.script(emit);
      const output_message = { role: "assistant", content: "" };
      const turn = { turn_id: "t", session_id: "s", input_messages: [] };
      const rest = { steps: [], output_message, status: "completed" };
      const started_at = new Date().toISOString();
      emit({
        event_type: "turn_complete",
        turn: { ...turn, ...rest, started_at },
      });
      controller.close();
    };
    window.stepComplete = (step_id, details) => ({
      event_type: "step_complete",
      step_type: details.step_type,
      step_id,
      step_details: {
        turn_id: "t",
        step_id,
        started_at: new Date().toISOString(),
        ...details,
      },
    });
    window.fetch = (url, options) =>
      String(url).endsWith("/turn")
        ? Promise.resolve(
            new Response(new ReadableStream({ start }), {
              headers: { "content-type": "text/event-stream" },
            }),
          )
        : original(url, options);
  });
  await page.evaluate(script, values);
  return opened;
}

const countElements = (page) => page.evaluate(() => document.querySelectorAll("*").length);

// Steps with a call each: 10,000 of them at once.
function sendSteps(hostile) {
  window.script = async (emit) => {
    for (let index = 0; index < 10_000; index += 1) {
      const isLast = index === 9999;
      const content = isLast ? hostile + "a".repeat(1_000_000) : hostile;
      const call_id = `c${index}`;
      const call = { call_id, tool_name: hostile, arguments: { hostile } };
      const result = { call_id, tool_name: hostile, content };
      const model_response = { role: "assistant", content, tool_calls: [] };
      const details =
        index % 2
          ? {
              step_type: "tool_execution",
              tool_calls: [call],
              tool_responses: [result],
            }
          : { step_type: "inference", model_response };
      emit(window.stepComplete(`s${index}`, details));
    }
  };
}

test("10,000 steps leave a bounded number of elements, and hostile texts are texts", async () => {
  const hostile =
    "<img src=x onerror=alert(1)> [x](javascript:alert(1)) ![y](https://elsewhere.example/y.png) \u202egnp.exe";
  const { page, problems, close: end } = await openScripted(sendSteps, hostile);
  await send(page, "go");
  const earlier = page.getByRole("button", { name: /Show earlier steps/ });
  await earlier.waitFor();
  await answersOf(page).locator(".run-foot").waitFor();
  assert.ok((await countElements(page)) < 2000, await countElements(page));
  await page.locator("summary").last().click();
  await page.getByRole("button", { name: /Show more of 1,000,\d+ characters/ }).waitFor();
  assert.equal(await page.locator(".parts img, .parts script, .parts a[href^='javascript']").count(), 0);
  assert.equal(await hasOverflow(page), false);
  await earlier.click();
  await page.getByRole("button", { name: /Show later steps/ }).waitFor();
  assert.ok((await countElements(page)) < 2000);
  assert.deepEqual(problems, []);
  await end();
});

// A step with so many calls.
function sendCalls(count) {
  window.script = async (emit) => {
    const calls = Array.from({ length: count }, (_, index) => ({
      call_id: `c${index}`,
      tool_name: `tool_${index}`,
      arguments: { index },
    }));
    const results = calls.map(({ call_id, tool_name }) => ({ call_id, tool_name, content: "done" }));
    emit(window.stepComplete("s", { step_type: "tool_execution", tool_calls: calls, tool_responses: results }));
  };
}

test("200 calls in a turn leave a bounded number of elements in a session", async () => {
  const { page, problems, close: end } = await openScripted(sendCalls, 200);
  await send(page, "go");
  await answersOf(page).locator(".run-foot").waitFor();
  assert.ok((await answersOf(page).locator("summary").count()) > 0);
  assert.ok((await countElements(page)) < 3000, await countElements(page));
  assert.equal(await hasOverflow(page), false);
  assert.deepEqual(problems, []);
  await end();
});

// 4,000 words, ten in each of 10 ms.
function sendWords() {
  window.script = async (emit) => {
    for (let index = 0; index < 4000; index += 1) {
      const text = `w${index}${index % 200 === 199 ? "\n\n" : " "}`;
      const delta = { type: "text", text };
      emit({
        event_type: "step_progress",
        step_type: "inference",
        step_id: "s",
        delta,
      });
      if (index % 10 === 9) await new Promise((next) => setTimeout(next, 10));
    }
    const model_response = {
      role: "assistant",
      content: "the end",
      tool_calls: [],
    };
    emit(window.stepComplete("s", { step_type: "inference", model_response }));
  };
}

test("1,000 events a second are shown with one rendering per frame, and the page stays usable", async () => {
  const { page, problems, close: end } = await openScripted(sendWords);
  await page.evaluate(() => {
    window.counts = { frames: 0, renderings: 0 };
    const count = () => {
      window.counts.frames += 1;
      requestAnimationFrame(count);
    };
    requestAnimationFrame(count);
    new MutationObserver(() => (window.counts.renderings += 1)).observe(document.querySelector("main"), {
      subtree: true,
      childList: true,
      characterData: true,
    });
  });
  await send(page, "go");
  await answersOf(page).getByText("w100 ").waitFor();
  const delay = await page.evaluate(
    () =>
      new Promise((resolve) => {
        const started = performance.now();
        document.querySelector("main select").value = "merge";
        document.querySelector("main select").dispatchEvent(new Event("change", { bubbles: true }));
        requestAnimationFrame(() => setTimeout(() => resolve(performance.now() - started)));
      }),
  );
  await answersOf(page).getByText("the end").waitFor();
  const { frames, renderings } = await page.evaluate(() => window.counts);
  console.log(
    `1,000 events/s: ${renderings} renderings in ${frames} frames, ${Math.round(delay)} ms from a choice to its frame`,
  );
  assert.ok(renderings <= frames + 20, `${renderings} in ${frames} frames`);
  assert.deepEqual(problems, []);
  await end();
});
