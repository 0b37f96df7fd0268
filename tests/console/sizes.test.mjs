// The bytes of the built page.
import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { test } from "node:test";

const ASSETS = new URL("../../functions/console/static/assets/", import.meta.url);
const MOST = { js: 90_000, css: 12_000 };
const LARGEST = 150_000; // infra/bench/console_price.py

async function sizes(end) {
  const names = (await readdir(ASSETS)).filter((name) => name.endsWith(end));
  return Promise.all(names.map(async (name) => (await readFile(new URL(name, ASSETS))).length));
}

for (const [kind, most] of Object.entries(MOST)) {
  test(`all ${kind} of the page has at most ${most} bytes, compressed`, async (context) => {
    for (const suffix of ["br", "gz"]) {
      const total = (await sizes(`.${kind}.${suffix}`)).reduce((sum, size) => sum + size, 0);
      context.diagnostic(`${kind}.${suffix}: ${total} bytes`);
      assert.ok(total > 1000 && total <= most);
    }
  });
}

test(`no file has more than ${LARGEST} bytes`, async () => {
  assert.ok(Math.max(...(await sizes(".js")), ...(await sizes(".css"))) <= LARGEST);
});
