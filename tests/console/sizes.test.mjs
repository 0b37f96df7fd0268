// The bytes of the built page.
import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { brotliCompressSync } from "node:zlib";

const PAGE = new URL("../../functions/console/", import.meta.url);
const ASSETS = new URL("../../functions/console/static/assets/", import.meta.url);
const MOST = { js: 90_000, css: 12_000 };
const LARGEST = 90_000; // infra/bench/console_price.py

async function sizes(end) {
  const names = (await readdir(ASSETS)).filter((name) => name.endsWith(end));
  return Promise.all(names.map(async (name) => (await readFile(new URL(name, ASSETS))).length));
}

for (const [kind, most] of Object.entries(MOST)) {
  test(`all ${kind} of the page has at most ${most} bytes, compressed`, async (context) => {
    const [brotli, gzip] = await Promise.all(
      ["br", "gz"].map(async (suffix) => (await sizes(`.${kind}.${suffix}`)).reduce((sum, size) => sum + size, 0)),
    );
    context.diagnostic(`${kind}: ${brotli} bytes by brotli, which browsers accept, ${gzip} by gzip`);
    assert.ok(brotli > 1000 && brotli <= most);
  });
}

test(`no file has more than ${LARGEST} bytes, compressed by gzip`, async () => {
  assert.ok(Math.max(...(await sizes(".js.gz")), ...(await sizes(".css.gz"))) <= LARGEST);
});

// Libraries as docs/decisions.md counts them: what is used of each, minified and compressed by brotli.
const LIBRARIES = {
  "Preact and signals":
    'import { render } from "preact"; import { useState, useEffect } from "preact/hooks"; import { jsx } from "preact/jsx-runtime"; import { signal, computed } from "@preact/signals"; console.log(render, useState, useEffect, jsx, signal, computed);',
  marked: 'import { Lexer } from "marked"; console.log(Lexer);',
};

test("docs/decisions.md has the sizes of the libraries", async (context) => {
  const { build } = await import(new URL("node_modules/esbuild/lib/main.js", PAGE));
  const decisions = await readFile(new URL("../../docs/decisions.md", import.meta.url), "utf8");
  const wrong = [];
  for (const [name, contents] of Object.entries(LIBRARIES)) {
    const { outputFiles } = await build({
      stdin: { contents, resolveDir: fileURLToPath(PAGE) },
      bundle: true,
      minify: true,
      format: "esm",
      write: false,
      legalComments: "none",
    });
    const kilobytes = brotliCompressSync(outputFiles[0].contents).length / 1000;
    context.diagnostic(`${name}: ${kilobytes.toFixed(1)} KB`);
    const stated = Number(new RegExp(`${name},? (\\d+) KB`).exec(decisions)?.[1]);
    if (!(Math.abs(kilobytes - stated) < 1)) wrong.push(`${name}: ${stated} KB in the document`);
  }
  assert.deepEqual(wrong, []);
});
