/** HTML of Markdown that models, tools and documents wrote. It is the only HTML of others in the page. */
import DOMPurify from "dompurify";
import { Marked } from "marked";

const TAGS = [
  ...["a", "blockquote", "br", "code", "del", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "img", "li", "ol", "p"],
  ...["pre", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul"],
];
const ATTRIBUTES = ["align", "alt", "href", "src", "start", "title"];
const LINK = /^(https?|mailto):/i;
const OWN_IMAGE = /^(data:image\/(png|jpeg|gif|webp);base64,|blob:)/i;

/** Text beyond this is not parsed, in characters. */
export const LONGEST = 200_000;

const marked = new Marked({
  gfm: true,
  breaks: true,
  renderer: {
    // Markup in the text is shown as it is.
    html: ({ text }) => escapeHtml(text),
    checkbox: ({ checked }) => (checked ? "☑ " : "☐ "),
  },
});

DOMPurify.addHook("afterSanitizeAttributes", (node) => {
  if (node.nodeName === "IMG") keepOrLinkImage(node);
  else if (node.nodeName === "A") openElsewhere(node);
});

/** Replace an image that would be loaded from elsewhere by a link to it. */
function keepOrLinkImage(image: Element): void {
  const source = image.getAttribute("src") ?? "";
  if (OWN_IMAGE.test(source)) return;
  const link = image.ownerDocument.createElement("a");
  link.textContent = image.getAttribute("alt") || source;
  link.setAttribute("href", source);
  openElsewhere(link);
  image.replaceWith(link);
}

/** Let a link open another page, which learns nothing about this one, and no path of this origin. */
function openElsewhere(link: Element): void {
  if (!LINK.test(link.getAttribute("href") ?? "")) {
    link.removeAttribute("href");
    return;
  }
  link.setAttribute("rel", "noopener noreferrer");
  link.setAttribute("target", "_blank");
}

export function renderMarkdown(text: string): TrustedHTML {
  const html = text.length > LONGEST ? `<pre>${escapeHtml(text)}</pre>` : marked.parse(text, { async: false });
  return DOMPurify.sanitize(html, {
    ALLOWED_TAGS: TAGS,
    ALLOWED_ATTR: [...ATTRIBUTES, "rel", "target"],
    ALLOW_DATA_ATTR: false,
    ALLOW_ARIA_ATTR: false,
    RETURN_TRUSTED_TYPE: true,
  }) as unknown as TrustedHTML;
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
    const blocks = marked.lexer(rest).map((token) => token.raw);
    if (blocks.join("") !== rest) return false;
    for (const block of blocks.slice(0, -2)) {
      this.#blocks.push(block);
      this.#read += block.length;
    }
    return blocks.length > 2;
  }
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
