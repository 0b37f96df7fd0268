// The API, to prepare what a test of a page begins with.
import { KEY, URL_ } from "./browser.mjs";

const authorization = `Bearer ${KEY}`;

export async function call(method, path, body) {
  const headers = { authorization, "content-type": "application/json" };
  const response = await fetch(`${URL_}${path}`, { method, headers, body: body && JSON.stringify(body) });
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
  return response.status === 204 ? null : response.json();
}

export async function upload(name, content) {
  const body = new FormData();
  body.set("purpose", "assistants");
  body.set("file", new File([content], name));
  const response = await fetch(`${URL_}/v1/files`, { method: "POST", headers: { authorization }, body });
  if (!response.ok) throw new Error(await response.text());
  return response.json();
}
