/** Documents and images that go with a message. */
import { ApiError } from "../errors";
import { formatBytes } from "../format";

export interface Attachment {
  name: string;
  type: string;
  size: number;
  /** The content as a data URL. */
  url: string;
}

/** Base64 makes a third more of it, and a request has at most 6 MB. */
const LARGEST = 4_200_000;
const IMAGE = /^image\/(png|jpeg|gif|webp)$/;

export function isImage({ type }: { type: string }): boolean {
  return IMAGE.test(type);
}

/** Read files beside those that a message has. Raises ApiError if all together are too large. */
export async function readFiles(files: readonly File[], before: readonly Attachment[]): Promise<Attachment[]> {
  const total = [...before, ...files].reduce((sum, { size }) => sum + size, 0);
  if (total > LARGEST) {
    const words = `The files are ${formatBytes(total)} together. A message can carry up to ${formatBytes(LARGEST)}.`;
    throw new ApiError(0, "too_large", `${words} Put larger documents into a vector store.`);
  }
  return Promise.all(files.map(readFile));
}

async function readFile(file: File): Promise<Attachment> {
  const type = (file.type || typeOf(file.name)).split(";")[0]!;
  const bytes = new File([file], file.name, { type });
  const url = await new Promise<string>((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result));
    reader.onerror = () => reject(new ApiError(0, "unreadable", `The browser cannot read ${file.name}.`));
    reader.readAsDataURL(bytes);
  });
  return { name: file.name || "pasted", type, size: file.size, url };
}

/** Browsers do not know the types of some texts. */
function typeOf(name: string): string {
  if (/\.pdf$/i.test(name)) return "application/pdf";
  return /\.html?$/i.test(name) ? "text/html" : "text/plain";
}
