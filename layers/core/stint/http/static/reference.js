// Shows the OpenAPI document of this server. Everything is put into the page as text, never as HTML.
"use strict";

const METHODS = ["get", "post", "put", "patch", "delete"];

/** Make an element; children are elements or text. */
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** The nodes of a text; what is between backticks is code. */
function prose(text) {
  return text.split(/`([^`]+)`/).map((part, index) => (index % 2 ? make("code", {}, part) : part));
}

/** A folded part, which is filled when it is first opened. */
function fold(title, fill) {
  const details = make("details", {}, make("summary", {}, ...title));
  details.addEventListener("toggle", () => {
    if (details.open && details.childElementCount === 1) details.append(fill());
  });
  return details;
}

/** The commands of an operation. All but the first one are folded. */
function commands(samples) {
  const [first, ...others] = samples;
  const folded = others.map((sample) => fold([sample.label], () => command(sample)));
  return [make("h3", {}, first.label ? `Example: ${first.label}` : "Example"), command(first), ...folded];
}

function command(sample) {
  const code = make("code", {}, sample.source);
  const button = make("button", { type: "button" }, "Copy");
  button.addEventListener("click", () => copy(button, code));
  return make("div", { class: "command" }, button, make("pre", { tabindex: 0 }, code));
}

/** Copy a text; select it where browsers do not let a page write to the clipboard, as over HTTP. */
async function copy(button, code) {
  try {
    await navigator.clipboard.writeText(code.textContent);
    button.textContent = "Copied";
  } catch {
    getSelection().selectAllChildren(code);
    button.textContent = "Selected";
  }
  setTimeout(() => (button.textContent = "Copy"), 2000);
}

class Reference {
  constructor(document) {
    this.document = document;
    this.schemas = document.components.schemas;
  }

  resolve(schema) {
    const name = schema.$ref?.split("/").pop();
    return name ? { title: name, ...this.schemas[name] } : schema;
  }

  /** The type of a schema in a few words. */
  nameOf(schema) {
    const variants = schema.anyOf ?? schema.oneOf ?? schema.allOf;
    if (schema.$ref) return schema.$ref.split("/").pop();
    if (variants) return variants.map((variant) => this.nameOf(variant)).join(" | ");
    if (schema.const !== undefined) return JSON.stringify(schema.const);
    if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
    if (schema.type === "array") return `list of ${this.nameOf(schema.items ?? {})}`;
    if (schema.type === "object" && schema.additionalProperties) return "object";
    return [schema.type ?? "any"].flat().join(" | ");
  }

  boundsOf(schema) {
    const names = { minimum: "at least", maximum: "at most", exclusiveMinimum: "more than", maxLength: "characters at most",
      minLength: "characters at least", maxItems: "entries at most", minItems: "entries at least" };
    const found = Object.entries(names).filter(([key]) => schema[key] !== undefined).map(([key, words]) => `${words} ${schema[key]}`);
    if (schema.default !== undefined) found.push(`default ${JSON.stringify(schema.default)}`);
    return found.join(", ");
  }

  /** The schemas with fields of their own that a schema leads to. */
  objectsIn(schema) {
    const whole = this.resolve(schema);
    const variants = whole.anyOf ?? whole.oneOf ?? whole.allOf;
    if (variants) return variants.flatMap((variant) => this.objectsIn(variant));
    if (whole.type === "array") return this.objectsIn(whole.items ?? {});
    return whole.properties ? [whole] : [];
  }

  /** The fields of a schema; objects inside fold open. */
  fields(schema) {
    const parts = this.objectsIn(schema).map((object) => {
      const rows = Object.entries(object.properties).map(([name, field]) => this.field(name, field, object.required ?? []));
      return make("div", {}, make("p", { class: "soft" }, object.title ?? "", ...prose(object.description ? `: ${object.description}` : "")), ...rows);
    });
    return make("div", { class: "body" }, ...(parts.length ? parts : [make("code", {}, this.nameOf(schema))]));
  }

  /** A field of an object, or a parameter, which has a place. */
  field(name, schema, required, place) {
    const label = make("code", required.includes(name) ? { class: "required" } : {}, name);
    const kind = schema.type === "null" ? ["not supported: always null"] : [this.nameOf(schema), this.boundsOf(schema)];
    const type = [place, ...kind].filter(Boolean).join("; ");
    const words = [" ", make("span", { class: "soft" }, type)];
    if (schema.description) words.push(make("span", {}, ...prose(` ${schema.description}`)));
    if (this.objectsIn(schema).length) return fold([label, ...words], () => this.fields(schema));
    return make("p", {}, label, ...words);
  }

  parameters(list) {
    const required = list.filter((each) => each.required).map((each) => each.name);
    const rows = list.map(({ name, description, schema, in: place }) => this.field(name, { description, ...schema }, required, place));
    return make("div", { class: "body" }, ...rows);
  }

  operation(method, path, operation, servers) {
    const title = [make("code", { class: `method ${method}` }, method.toUpperCase()), make("code", {}, path), ` ${operation.summary}`];
    return fold(title, () => {
      const parts = [make("p", {}, ...prose(operation.description ?? ""))];
      const scope = operation["x-required-scope"];
      if (scope) parts.push(make("p", {}, "Scope: ", make("code", {}, scope)));
      if (servers.length > 1) parts.push(make("p", {}, "Also at: ", ...servers.slice(1).map((server) => make("code", {}, server.url + path))));
      parts.push(...commands(operation["x-codeSamples"]));
      if (operation.parameters?.length) parts.push(make("h3", {}, "Parameters"), this.parameters(operation.parameters));
      for (const [type, content] of Object.entries(operation.requestBody?.content ?? {})) {
        parts.push(make("h3", {}, `Body, ${type}`), this.fields(content.schema));
      }
      for (const [status, response] of Object.entries(operation.responses)) {
        for (const [type, answer] of Object.entries(response.content ?? {})) {
          parts.push(fold([`Answer ${status}, ${type}`], () => this.fields(answer.schema ?? {})));
        }
      }
      return make("div", { class: "body" }, ...parts);
    });
  }

  /** All operations by their tags, each with the words by which it is found. */
  sections() {
    const sections = new Map(this.document.tags.map((tag) => [tag.name, { tag, operations: [] }]));
    for (const [path, item] of Object.entries(this.document.paths)) {
      for (const method of METHODS.filter((each) => item[each])) {
        const operation = item[method];
        const element = this.operation(method, path, operation, operation.servers ?? this.document.servers);
        element.id = operation.operationId;
        const words = [method, path, operation.operationId, operation.summary, operation.description].join(" ").toLowerCase();
        sections.get(operation.tags.at(-1))?.operations.push({ element, words });
      }
    }
    return [...sections.values()].filter((section) => section.operations.length);
  }
}

/** Show the sections, and a link to each. */
function fillPage(main, sections) {
  main.replaceChildren();
  for (const section of sections) {
    const { name, description } = section.tag;
    const id = `group-${name.toLowerCase().replaceAll(" ", "-")}`;
    const heading = [make("h2", {}, name), make("p", { class: "soft" }, ...prose(description ?? ""))];
    section.element = make("section", { id }, ...heading, ...section.operations.map((each) => each.element));
    section.link = make("li", {}, make("a", { href: `#${id}` }, name));
    main.append(section.element);
    document.getElementById("groups").append(section.link);
  }
}

/** Show only the operations that have all words of a text. */
function find(text, sections) {
  const wanted = text.toLowerCase().split(/\s+/).filter(Boolean);
  for (const section of sections) {
    for (const each of section.operations) each.element.hidden = !wanted.every((word) => each.words.includes(word));
    section.link.hidden = section.element.hidden = section.operations.every((each) => each.element.hidden);
  }
  const isFound = sections.some((section) => !section.element.hidden);
  document.getElementById("found").textContent = isFound ? "" : `No operation matches “${text.trim()}”.`;
}

async function show() {
  const main = document.getElementById("operations");
  try {
    const answer = await fetch("v1/openapi.json");
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    const described = await answer.json();
    const sections = new Reference(described).sections();
    document.getElementById("about").textContent = described.info.summary;
    fillPage(main, sections);
    const linked = document.getElementById(location.hash.slice(1));
    if (linked) {
      linked.open = true;
      linked.scrollIntoView();
    }
    document.getElementById("find").addEventListener("input", (event) => find(event.target.value, sections));
  } catch (error) {
    main.textContent = `The OpenAPI document could not be read: ${error.message}`;
  }
}

show();
