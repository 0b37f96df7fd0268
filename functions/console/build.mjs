// Build the page into static/: an entry and the parts that it loads, with hashes in their names, each also compressed.
// The folder is replaced at the end, so that a failed build leaves the last one.
import { createHash } from "node:crypto";
import { mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { build } from "esbuild";

const OUT = "static.new";
const ASSETS = join(OUT, "assets");

await rm(OUT, { recursive: true, force: true });
await mkdir(ASSETS, { recursive: true });
const result = await build({
  entryPoints: { console: "src/main.tsx", style: "src/styles/index.css" },
  outdir: ASSETS,
  entryNames: "[name]-[hash]",
  chunkNames: "[name]-[hash]",
  bundle: true,
  splitting: true,
  format: "esm",
  target: ["es2022"],
  minify: true,
  legalComments: "none",
  jsx: "automatic",
  jsxImportSource: "preact",
  metafile: true,
  logLevel: "warning",
});
const built = (name) =>
  Object.keys(result.metafile.outputs)
    .find((path) => path.includes(`/${name}-`))
    .split("/")
    .pop();
for (const name of await readdir(ASSETS)) {
  const content = await readFile(join(ASSETS, name));
  const options = {
    params: { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: content.length },
  };
  await writeFile(join(ASSETS, `${name}.br`), brotliCompressSync(content, options));
  await writeFile(join(ASSETS, `${name}.gz`), gzipSync(content, { level: 9 }));
}
const version = (await readFile("../../pyproject.toml", "utf8")).match(/^version = "(.+)"$/m)[1];
const script = built("console");
await writeFile(join(OUT, "version"), `${version}-${createHash("sha256").update(script).digest("hex").slice(0, 8)}\n`);
const page = await readFile("src/index.html", "utf8");
await writeFile(join(OUT, "index.html"), page.replace("{script}", script).replace("{style}", built("style")));
await rm("static", { recursive: true, force: true });
await rename(OUT, "static");
