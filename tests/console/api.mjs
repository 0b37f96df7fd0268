// The API, to prepare what a test of a page begins with.
import { URL_ } from "./browser.mjs";

export class Api {
  #authorization;

  constructor(key) {
    this.#authorization = `Bearer ${key}`;
  }

  async call(method, path, body) {
    const headers = { authorization: this.#authorization, "content-type": "application/json" };
    const response = await fetch(`${URL_}${path}`, { method, headers, body: body && JSON.stringify(body) });
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
    return response.status === 204 ? null : response.json();
  }

  async upload(name, content) {
    const body = new FormData();
    body.set("purpose", "assistants");
    body.set("file", new File([content], name));
    const headers = { authorization: this.#authorization };
    const response = await fetch(`${URL_}/v1/files`, { method: "POST", headers, body });
    if (!response.ok) throw new Error(await response.text());
    return response.json();
  }
}
