// The API reference at /docs.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { until, URL_ } from "./api.mjs";
import { check, close, DESKTOP, hasOverflow, open, PHONE, readClipboard, show } from "./browser.mjs";

after(close);

const SMALL_PHONE = { width: 320, height: 568 };
const LOOKS = [
  { size: "desktop", viewport: DESKTOP, scheme: "light" },
  { size: "phone", viewport: PHONE, scheme: "dark" },
  { size: "small-phone", viewport: SMALL_PHONE, scheme: "light" },
];

// Open the reference, and return the document that it shows, too.
async function openReference(options = {}) {
  const opened = await open({ path: "/docs", ...options });
  await opened.page.locator("#operations details").first().waitFor();
  const document = await opened.page.evaluate(async () => (await fetch("v1/openapi.json")).json());
  const operations = Object.values(document.paths).flatMap((item) => Object.values(item));
  return { ...opened, operations };
}

// Open what is folded, `levels` deep.
async function unfold(page, levels) {
  for (let level = 0; level < levels; level += 1) {
    await page.evaluate(() => {
      for (const details of document.querySelectorAll("details")) details.open = true;
    });
    await until(() =>
      page.evaluate(() =>
        [...document.querySelectorAll("details")].every((each) => each.childElementCount > 1 || !each.open),
      ),
    );
  }
}

// The operations and the elements that are wider than the screen.
async function findWide(page) {
  return page.evaluate(() => {
    const { clientWidth } = document.documentElement;
    const wide = [...document.querySelectorAll("main *")].filter(
      (each) => !each.closest("pre code") && each.getBoundingClientRect().right > clientWidth + 1,
    );
    return wide.slice(0, 5).map((each) => `${each.closest("[id]")?.id}: ${each.outerHTML.slice(0, 200)}`);
  });
}

for (const { size, viewport, scheme } of LOOKS) {
  test(`the reference opens without violations, ${size}`, async () => {
    const { page, problems, close: end } = await openReference({ viewport, scheme });
    await page.locator("#create_response > summary").click();
    await page.locator("#create_file > summary").click();
    await page.locator("#create_response details > summary").first().click();
    await page.getByText("Body, multipart/form-data").waitFor();

    await check(page, problems, `reference-${size}`);
    await end();
  });

  test(`the reference fits the screen with every operation open, ${size}`, async () => {
    const { page, problems, operations, close: end } = await openReference({ viewport, scheme });
    assert.equal(await hasOverflow(page), false);
    await unfold(page, 3);

    assert.equal(await page.locator("section > details > .body").count(), operations.length);
    assert.deepEqual(await findWide(page), []);
    assert.equal(await hasOverflow(page), false, "the page is wider than the screen");
    assert.deepEqual(problems, []);
    await end();
  });
}

test("an open page fits when the screen becomes narrow", async () => {
  const { page, close: end } = await openReference();
  await unfold(page, 1);
  await show(page, { viewport: PHONE, scheme: "light" });

  assert.equal(await hasOverflow(page), false);
  await end();
});

test("every operation shows a command of curl for this server, and copies it", async () => {
  const { page, problems, operations, close: end } = await openReference();
  await unfold(page, 2);

  for (const operation of operations) {
    const shown = await page.locator(`[id="${operation.operationId}"] .command code`).allInnerTexts();
    const samples = operation["x-codeSamples"].map((sample) => sample.source);
    assert.deepEqual(shown, samples, operation.operationId);
    for (const sample of samples) assert.match(sample, new RegExp(`^curl .*"${URL_}/prod/(v1|\\.well-known)/`));
  }
  const [, ...others] = operations.find((each) => each.operationId === "create_response")["x-codeSamples"];
  await page.locator("#create_response .command button").nth(1).click();
  await page.getByRole("button", { name: "Copied" }).waitFor();
  assert.equal(await readClipboard(page), others[0].source);
  assert.deepEqual(problems, []);
  await end();
});

test("a command is selected where the browser does not let the page copy", async () => {
  const { page, operations, close: end } = await openReference();
  await page.evaluate(() => Object.defineProperty(navigator, "clipboard", { value: undefined }));
  await page.locator("#create_agent > summary").click();
  await page.locator("#create_agent .command button").first().click();

  await page.getByRole("button", { name: "Selected" }).waitFor();
  const [sample] = operations.find((each) => each.operationId === "create_agent")["x-codeSamples"];
  assert.equal(await page.evaluate(() => getSelection().toString()), sample.source);
  await end();
});

test("a link opens its operation, and words find operations", async () => {
  const { page, close: end } = await openReference({ path: "/docs#create_agent" });
  await page.locator("#create_agent .command").waitFor();
  await page.getByLabel("Find").fill("post vector search");

  assert.equal(await page.locator("#search_vector_store").isVisible(), true);
  assert.equal(await page.locator("#create_agent").isVisible(), false);
  await end();
});

test("a search without a match says so", async () => {
  const { page, problems, close: end } = await openReference({ viewport: SMALL_PHONE });
  const found = page.getByRole("status");
  await page.getByLabel("Find").fill(" <b>unicorn</b> ");
  await found.getByText("No operation matches “<b>unicorn</b>”.").waitFor();
  assert.equal(await page.locator("#groups li:visible, section:visible").count(), 0);
  await page.getByLabel("Find").fill("u".repeat(500));
  await check(page, problems, "reference-nothing");
  await page.getByLabel("Find").fill("conversation");
  await page.locator("#create_conversation").waitFor();
  assert.equal(await found.innerText(), "");
  await end();
});

test("the groups are listed, and a link jumps to its group", async () => {
  const { page, operations, close: end } = await openReference({ viewport: SMALL_PHONE });
  const links = page.getByRole("navigation", { name: "Groups" }).getByRole("link");
  const names = new Set(operations.map((each) => each.tags.at(-1)));
  assert.deepEqual(new Set(await links.allInnerTexts()), names);
  await page.getByRole("link", { name: "Vector stores", exact: true }).click();
  const top = await page
    .getByRole("heading", { name: "Vector stores" })
    .evaluate((each) => each.getBoundingClientRect().top);
  assert.ok(top >= 0 && top < SMALL_PHONE.height / 2, `the heading is at ${top}`);
  await page.getByLabel("Find").fill("create_vector_store");
  assert.deepEqual(await links.allInnerTexts(), ["Vector stores"]);
  await end();
});

test("code in descriptions is code, required fields have a legend, and what is always null is not supported", async () => {
  const { page, close: end } = await openReference({ path: "/docs#create_response" });
  await page.getByText("* marks required fields and parameters.").waitFor();
  await page.locator("#create_response .command").first().waitFor();
  await unfold(page, 1);
  const texts = await page.locator("p, summary").allInnerTexts();
  assert.deepEqual(
    texts.filter((text) => text.includes("`")),
    [],
  );
  assert.ok((await page.locator("#create_response > .body > p code").allInnerTexts()).includes("stream"));
  const prompt = page.locator("#create_response p", { has: page.locator("code", { hasText: /^prompt$/ }) }).first();
  assert.equal(await prompt.innerText(), "prompt not supported: always null");
  await end();
});
