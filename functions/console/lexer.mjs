// Bundle marked's lexer without its renderer and parser, which its built file always runs. Its sources are in the
// source map that its package has.
import { readFile } from "node:fs/promises";

const MAP = new URL("node_modules/marked/lib/marked.esm.js.map", import.meta.url);
const NAMESPACE = "marked";

export const lexerOfMarked = {
  name: "lexer-of-marked",
  setup({ onResolve, onLoad }) {
    const sources = readFile(MAP, "utf8").then((text) => {
      const { sources: names, sourcesContent: contents } = JSON.parse(text);
      return new Map(names.map((name, index) => [name.split("/").pop(), contents[index]]));
    });
    onResolve({ filter: /^marked$/ }, () => ({ path: "marked", namespace: NAMESPACE }));
    onResolve({ filter: /^\.\//, namespace: NAMESPACE }, ({ path }) => ({ path: path.slice(2), namespace: NAMESPACE }));
    onLoad({ filter: /./, namespace: NAMESPACE }, async ({ path }) => ({
      contents: path === "marked" ? 'export { _Lexer as Lexer } from "./Lexer.ts";' : (await sources).get(path),
      loader: "ts",
    }));
  },
};
