/** Markdown that models, tools and documents wrote, as elements.
 *
 * It never becomes HTML: markup in it is text, so there is nothing to sanitize. A link leads to another origin, and an
 * image is shown only if the text contains it; any other one is a link. */
import { Lexer, type MarkedToken, type Token, type Tokens } from "marked";
import { createElement, Fragment, type ComponentChildren, type JSX } from "preact";

const LINK = /^(https?|mailto):/i;
const OWN_IMAGE = /^(data:image\/(png|jpeg|gif|webp);base64,|blob:)/i;
const ENTITIES: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", nbsp: "\u00a0" };
const ENTITY = /&(?:#(\d{1,7})|#x([\da-f]{1,6})|(amp|lt|gt|quot|apos|nbsp));/gi;

/** Text beyond this is not parsed, in characters. */
export const LONGEST = 200_000;

/** Lists and quotes that are nested deeper are shown as their text. */
const DEEPEST = 20;

export function MarkdownBlock({ source }: { source: string }): JSX.Element {
  return <>{source.length > LONGEST ? <pre>{source}</pre> : render(tokensOf(source), 0)}</>;
}

function tokensOf(text: string): Token[] {
  return Lexer.lex(text, { gfm: true, breaks: true });
}

function render(tokens: readonly Token[] | undefined, depth: number): ComponentChildren {
  if (depth > DEEPEST) return tokens?.map((token) => token.raw).join("");
  return tokens?.map((token, index) => <Fragment key={index}>{renderToken(token as MarkedToken, depth + 1)}</Fragment>);
}

function renderToken(token: MarkedToken, depth: number): ComponentChildren {
  switch (token.type) {
    case "heading":
      return createElement(`h${token.depth}`, null, render(token.tokens, depth));
    case "paragraph":
      return <p>{render(token.tokens, depth)}</p>;
    case "blockquote":
      return <blockquote>{render(token.tokens, depth)}</blockquote>;
    case "list":
      return <List token={token} depth={depth} />;
    case "table":
      return <Table token={token} depth={depth} />;
    case "code":
      return (
        <pre>
          <code>{token.text}</code>
        </pre>
      );
    case "hr":
      return <hr />;
    case "br":
      return <br />;
    case "strong":
    case "em":
    case "del":
      return createElement(token.type, null, render(token.tokens, depth));
    case "codespan":
      return <code>{token.text}</code>;
    case "link":
      return <Link address={token.href}>{render(token.tokens, depth)}</Link>;
    case "image":
      return <Image token={token} />;
    case "text":
      return "tokens" in token && token.tokens ? render(token.tokens, depth) : decode(token.text);
    case "escape":
      return token.text;
    case "html":
      return token.text;
    case "space":
    case "def":
      return null;
    default:
      return (token as Token).raw;
  }
}

/** Return a text with the characters of its entities. */
function decode(text: string): string {
  return text.replace(ENTITY, (entity, decimal?: string, hexadecimal?: string, name?: string) => {
    if (name) return ENTITIES[name.toLowerCase()] ?? entity;
    const code = decimal ? Number(decimal) : parseInt(hexadecimal ?? "", 16);
    return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : entity;
  });
}

interface PartProps<T> {
  token: T;
  depth: number;
}

function List({ token, depth }: PartProps<Tokens.List>): JSX.Element {
  const items = token.items.map((item, index) => (
    <li key={index}>
      {item.task && (item.checked ? "☑ " : "☐ ")}
      {render(
        item.tokens.filter(({ type }) => type !== "checkbox"),
        depth,
      )}
    </li>
  ));
  return token.ordered ? <ol start={Number(token.start) || 0}>{items}</ol> : <ul>{items}</ul>;
}

function Table({ token, depth }: PartProps<Tokens.Table>): JSX.Element {
  return (
    <table>
      <thead>
        <tr>
          {token.header.map((cell, index) => (
            <th key={index}>{render(cell.tokens, depth)}</th>
          ))}
        </tr>
      </thead>
      <tbody>
        {token.rows.map((row, place) => (
          <tr key={place}>
            {row.map((cell, index) => (
              <td key={index}>{render(cell.tokens, depth)}</td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** A link to another page, which learns nothing about this one. Any other address is shown as text. */
function Link({ address, children }: { address: string; children: ComponentChildren }): JSX.Element {
  if (!LINK.test(address)) return <>{children}</>;
  return (
    <a href={address} rel="noopener noreferrer" target="_blank">
      {children}
    </a>
  );
}

function Image({ token }: { token: Tokens.Image }): JSX.Element {
  if (OWN_IMAGE.test(token.href)) return <img src={token.href} alt={token.text} />;
  return <Link address={token.href}>{token.text || token.href}</Link>;
}

/** Divider of a text that grows into blocks, of which only the last one changes. */
export class BlockReader {
  #text = "";
  #read = 0;
  #blocks: string[] = [];

  read(text: string): readonly string[] {
    const lines = text.includes("\r") ? text.replace(/\r\n?/g, "\n") : text;
    if (!lines.startsWith(this.#text.slice(0, this.#read))) {
      this.#read = 0;
      this.#blocks = [];
    }
    this.#text = lines;
    while (this.#finishBlocks(lines.slice(this.#read, this.#read + LONGEST)) && this.#read + LONGEST < lines.length);
    return [...this.#blocks, lines.slice(this.#read)];
  }

  /** Divide the beginning of what is not divided yet. Return whether a block of it is finished. */
  #finishBlocks(rest: string): boolean {
    const blocks = tokensOf(rest).map((token) => token.raw);
    if (blocks.join("") !== rest) return false;
    for (const block of blocks.slice(0, -2)) {
      this.#blocks.push(block);
      this.#read += block.length;
    }
    return blocks.length > 2;
  }
}
