// Vector stores, files, ingestion, chunks and searches.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createKey } from "./api.mjs";
import { check, close, LOOKS, prepare, shot, tabTo, violations } from "./browser.mjs";

after(close);

const { api, open } = await prepare("knowledge");
const HOSTILE_NAME = "<img src=x onerror=alert(1)> \u202Etxt.exe & \u00fcml\u00e4ut.md";
const HOSTILE_TEXT = [
  "# Llamas",
  "<script>alert(1)</script> <img src=https://elsewhere.example/x.png onerror=alert(2)>",
  "[click](javascript:alert(3)) Llamas live in the Andes, and a LLAMA carries wool.",
  "x".repeat(200_000),
].join("\n\n");

let store;

before(async () => {
  store = await api.createStore(`Hostile ${HOSTILE_NAME}`, {
    [HOSTILE_NAME]: HOSTILE_TEXT,
    "otters.txt": "Otters sleep in rivers and hold hands. They eat fish, and the river is cold.",
    "broken.pdf": "%PDF-1.7 this is no document",
  });
});

for (const { size, viewport, scheme } of LOOKS) {
  test(`the lists of stores and files show hostile names as text, ${size}`, async () => {
    const { page, problems, close: end } = await open({ viewport, scheme, path: "/console/knowledge" });
    const name = await page.getByRole("link", { name: /Hostile <img/ }).innerText();
    assert.ok(!/[\u202a-\u202e]/.test(name), "a name turns the direction of what follows");
    await check(page, problems, `stores-${size}`);
    await page.getByRole("link", { name: "Files", exact: true }).click();
    await page.getByText("otters.txt").first().waitFor();
    await check(page, problems, `files-${size}`);
    await end();
  });

  test(`a store shows its files, and why one failed, ${size}`, async () => {
    const path = `/console/knowledge/stores/${store.id}`;
    const { page, problems, close: end } = await open({ viewport, scheme, path });
    await page.getByText("2 of 3 files can be searched, 1 failed").waitFor();
    await page
      .getByText(/broken.pdf.*PDF|PDF.*broken.pdf/)
      .first()
      .waitFor();
    await check(page, problems, `store-${size}`);
    await end();
  });

  test(`a search shows rank, score and matching words in three modes, ${size}`, async () => {
    const path = `/console/knowledge/stores/${store.id}/search`;
    const { page, problems, close: end } = await open({ viewport, scheme, path });
    await page.getByLabel("Search for").fill("Where do llamas live?");
    await page.keyboard.press("Enter");
    for (const mode of ["Vector", "Keyword", "Hybrid"]) {
      if (size === "phone") await page.getByRole("button", { name: mode, exact: true }).click();
      const part = page.getByRole("region", { name: `${mode} search` });
      const first = part.getByRole("listitem").first();
      await first.getByLabel("Rank 1").waitFor();
      assert.ok(Number(await first.locator(".score .number").innerText()) > 0);
      const marked = await first.locator("mark").allInnerTexts();
      assert.ok(
        marked.some((word) => word.toLowerCase() === "llamas"),
        marked.join(),
      );
      assert.match(await first.innerText(), /Rank in /);
      assert.equal(await part.isVisible(), true);
    }
    assert.equal(await page.locator("main img, main script").count(), 0);
    await check(page, problems, `search-${size}`);
    await page.reload();
    await page.getByLabel("Rank 1").first().waitFor({ state: "attached" });
    assert.equal(await page.getByLabel("Search for").inputValue(), "Where do llamas live?");
    await end();
  });

  test(`a file shows its chunks and text as text, its attributes, and no more than it can, ${size}`, async () => {
    const path = `/console/knowledge/stores/${store.id}`;
    const { page, problems, close: end } = await open({ viewport, scheme, path });
    await page.getByRole("link", { name: /<img src=x/ }).click();
    const chunks = page.getByLabel("Chunks of the file");
    await chunks.getByRole("heading", { name: "Chunk 20", exact: true }).waitFor();
    assert.equal(await chunks.getByRole("listitem").count(), 20, "one page of chunks");
    assert.match(await chunks.getByRole("listitem").first().innerText(), /Chunk 1\n[\d,]+ tokens · [\d,.]+ \wB/);
    await chunks.getByText("<script>alert(1)</script>").first().waitFor();
    await chunks.getByRole("button", { name: "Load more chunks" }).click();
    await chunks.getByRole("heading", { name: "Chunk 21", exact: true }).waitFor();
    await page.getByText("Whole text").click();
    const text = page.getByLabel("Text of the file", { exact: true });
    await text.getByText("<script>alert(1)</script>").waitFor();
    assert.ok((await text.innerText()).length < 20_000);
    await page.getByRole("button", { name: "Edit attributes" }).click();
    await page.getByLabel("Attributes as JSON").fill("{");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText(/This is not JSON/).waitFor();
    assert.deepEqual(await violations(page), []);
    await shot(page, `attributes-${size}`);
    await page.getByLabel("Attributes as JSON").fill('{"author": "<b>me</b>", "year": 2026}');
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("<b>me</b>", { exact: true }).waitFor();
    await check(page, problems, `document-${size}`);
    await end();
  });

  test(`a store is made, gets files with progress, is followed, and is deleted, ${size}`, async () => {
    const { page, problems, requests, close: end } = await open({ viewport, scheme, path: "/console/knowledge" });
    await page.getByRole("button", { name: "New vector store" }).click();
    assert.deepEqual(await violations(page), []);
    await shot(page, `new-store-${size}`);
    await page.getByLabel("Name", { exact: true }).fill(`Made on a ${size}`);
    await page.getByRole("button", { name: "Create" }).click();
    await page.getByRole("heading", { name: `Made on a ${size}` }).waitFor();
    await page.getByText("This vector store has no file yet").waitFor();
    await shot(page, `empty-store-${size}`);

    // The second part of the large file waits, so that its progress can be seen.
    let goOn;
    const isSeen = new Promise((resolve) => (goOn = resolve));
    let sent = 0;
    await page.route("**/parts", async (route) => {
      if ((sent += 1) > 1) await isSeen;
      await route.continue();
    });
    await page.getByLabel("Files to upload").setInputFiles([
      { name: "cats.md", mimeType: "text/markdown", buffer: Buffer.from("Cats sleep. ".repeat(50)) },
      { name: "large.txt", mimeType: "text/plain", buffer: Buffer.from("Whales sing in the sea. ".repeat(220_000)) },
      { name: "picture.png", mimeType: "image/png", buffer: Buffer.from([137, 80, 78, 71, 13, 10, 26, 10, 0, 0, 1]) },
      { name: "empty.txt", mimeType: "text/plain", buffer: Buffer.alloc(0) },
    ]);
    await page.getByText("The file is empty.").waitFor();
    await page.getByText(/^[45][.\d]* MB of 5.3 MB sent/).waitFor();
    assert.ok(Number(await page.getByRole("progressbar", { name: "Upload of large.txt" }).getAttribute("value")) > 0);
    await shot(page, `uploads-${size}`);
    goOn();
    await page
      .getByRole("row", { name: /picture.png/ })
      .getByText("failed")
      .waitFor();
    await page
      .getByRole("row", { name: /cats.md/ })
      .getByText("completed")
      .waitFor();
    await page
      .getByRole("row", { name: /large.txt/ })
      .getByText(/in progress|completed/)
      .waitFor();
    const parts = requests.filter((request) => request.url().endsWith("/parts"));
    assert.equal(parts.length, 2);
    assert.match(await page.getByRole("row", { name: /picture.png/ }).innerText(), /not supported|pictures?|image/i);
    assert.deepEqual(await violations(page), []);
    await shot(page, `ingestion-${size}`);

    await page.getByRole("button", { name: "Remove cats.md" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Remove" }).click();
    await page.getByRole("row", { name: /cats.md/ }).waitFor({ state: "detached" });
    await page.getByRole("button", { name: "Add an uploaded file" }).click();
    await page
      .getByRole("dialog")
      .getByRole("button", { name: /cats.md/ })
      .first()
      .click();
    await page
      .getByRole("row", { name: /cats.md/ })
      .getByText("completed")
      .waitFor();

    await page.getByRole("button", { name: "Delete", exact: true }).click();
    await page.getByRole("dialog").waitFor();
    await shot(page, `delete-${size}`);
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "hidden" });
    await page.waitForFunction(() => document.activeElement.textContent === "Delete");
    await page.keyboard.press("Enter");
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await page.getByRole("heading", { name: "Knowledge" }).waitFor();
    assert.deepEqual(problems, []);
    await end();
  });
}

test("the path of knowledge works by keyboard alone", async () => {
  const { page, problems, close: end } = await open({ path: "/console/knowledge" });
  await page.getByRole("button", { name: "New vector store" }).waitFor();
  await tabTo(page, "New vector store");
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").waitFor();
  await tabTo(page, "Name");
  await page.keyboard.type("By keys");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "By keys" }).waitFor();
  await page.getByText("This vector store has no file yet").waitFor();
  await page.getByRole("dialog").waitFor({ state: "hidden" });
  await page.waitForLoadState("networkidle"); // what is loaded may move the focus
  const choosing = page.waitForEvent("filechooser"); // takes effect some time after the call
  await tabTo(page, "Choose files");
  await page.keyboard.press("Enter");
  await (await choosing).setFiles({ name: "bees.txt", mimeType: "text/plain", buffer: Buffer.from("Bees dance.") });
  const row = page.getByRole("row", { name: /bees.txt/ });
  await row.getByText("completed").waitFor();
  await tabTo(page, "Search");
  await page.keyboard.press("Enter");
  await page.getByLabel("Search for").waitFor();
  await tabTo(page, "Search for");
  await page.keyboard.type("bees");
  await page.keyboard.press("Enter");
  await page.getByLabel("Rank 1").first().waitFor();
  assert.deepEqual(problems, []);
  await end();
});

test("a list of 130 stores is paged, and one of them is found by its name and by its id", async () => {
  const made = [];
  for (let index = 0; index < 130; index += 1) {
    made.push(await api.call("POST", "/v1/vector_stores", { name: index ? `Store ${index}` : "Needle" }));
  }
  const { page, close: end } = await open({ path: "/console/knowledge" });
  await page.getByRole("link", { name: "Store 129" }).waitFor();
  assert.equal(await page.getByRole("row").count(), 51);
  await page.getByRole("button", { name: "Load more" }).click();
  await page.getByRole("link", { name: "Store 79" }).waitFor();
  await page.getByLabel("Find by name or id").fill("needle");
  await page.getByRole("link", { name: "Needle" }).waitFor();
  assert.equal(await page.getByRole("row").count(), 2);
  await page.getByLabel("Find by name or id").fill(made[0].id);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Needle" }).waitFor();
  await end();
});

test("an upload that breaks says so, and goes on without choosing the file again", async () => {
  const { id } = await api.call("POST", "/v1/vector_stores", { name: "Breaks" });
  const { page, close: end } = await open({ path: `/console/knowledge/stores/${id}` });
  await page.route("**/v1/files", (route) => route.abort());
  const file = { name: "again.txt", mimeType: "text/plain", buffer: Buffer.from("Once more. ".repeat(9)) };
  await page.getByLabel("Files to upload").setInputFiles(file);
  await page.getByText("The connection broke.").waitFor();
  await shot(page, "upload-broken");
  await page.unroute("**/v1/files");
  await page.getByRole("button", { name: "Try again again.txt" }).click();
  await page
    .getByRole("row", { name: /again.txt/ })
    .getByText("completed")
    .waitFor();
  await end();
});

test("the states of errors and of loading are designed", async () => {
  const { page, close: end } = await open({ path: "/console/knowledge/stores/vs_unknown" });
  await page.getByText("Not found", { exact: true }).waitFor();
  await shot(page, "store-unknown");
  await page.route("**/v1/vector_stores**", (route) =>
    route.fulfill({ status: 503, json: { error: { message: "The store is unavailable." } } }),
  );
  await page.getByRole("link", { name: "Vector stores" }).click();
  await page.getByText("The server failed").waitFor();
  await shot(page, "stores-failed");
  await page.unroute("**/v1/vector_stores**");
  await page.getByRole("button", { name: "Try again" }).click();
  await page.getByRole("table").waitFor();
  await end();
});

test("a key that may only read is offered no change", async () => {
  const key = await createKey("knowledge", ["use", "admin"]);
  const { page, close: end } = await open({ key, path: "/console/knowledge" });
  await page.getByLabel("Find by name or id").fill("hostile");
  await page.getByRole("link", { name: /Hostile/ }).waitFor();
  assert.equal(await page.getByRole("button", { name: "New vector store" }).count(), 0);
  await page.getByRole("link", { name: /Hostile/ }).click();
  await page.getByText("otters.txt").waitFor();
  for (const name of ["Delete", /Remove/, "Choose files", "Add an uploaded file"]) {
    assert.equal(await page.getByRole("button", { name }).count(), 0);
  }
  await page.getByRole("link", { name: "otters.txt" }).click();
  await page.getByText("Otters sleep").waitFor();
  assert.equal(await page.getByRole("button", { name: "Edit attributes" }).count(), 0);
  await end();
});
