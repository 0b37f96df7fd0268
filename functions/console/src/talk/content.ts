/** Contents of messages and results as text and images. */
import { isRecord } from "../errors";
import type { Content } from "./transcript";

export interface ReadContent {
  text: string;
  /** Images that need no request. */
  images: readonly string[];
  /** Addresses of images that are elsewhere. */
  links: readonly string[];
}

/** Read a text, an item, or a list of items. */
export function readContent(content: Content | null | undefined): ReadContent {
  const texts: string[] = [];
  const images: string[] = [];
  const links: string[] = [];
  for (const item of Array.isArray(content) ? content : [content]) {
    if (typeof item === "string") texts.push(item);
    else if (item?.type === "image") {
      const source = item.image.data ? imageUrl(item.image.data) : (item.image.url?.uri ?? "");
      (isOwn(source) ? images : links).push(source);
    } else if (item && typeof item.text === "string") texts.push(item.text);
  }
  return { text: texts.join("\n"), images, links };
}

/** Return base64 of an image as a data URL. */
export function imageUrl(data: string): string {
  if (data.startsWith("data:")) return data;
  const type = data.startsWith("/9j/")
    ? "jpeg"
    : data.startsWith("R0lG")
      ? "gif"
      : data.startsWith("UklG")
        ? "webp"
        : "png";
  return `data:image/${type};base64,${data}`;
}

/** Return whether an image may be shown: one that is part of the page, and no document with scripts. */
export function isOwn(source: string): boolean {
  return /^data:image\/(png|jpeg|gif|webp);base64,/i.test(source);
}

/** Return JSON with spaces, if the text is JSON that is not long. */
export function prettyJson(text: string): string {
  if (text.length > 100_000) return text;
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) || Array.isArray(value) ? JSON.stringify(value, null, 2) : text;
  } catch {
    return text;
  }
}
