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

/** A folded part, which is filled when it is first opened. */
function fold(title, fill) {
  const details = make("details", {}, make("summary", {}, ...title));
  details.addEventListener("toggle", () => {
    if (details.open && details.childElementCount === 1) details.append(fill());
  });
  return details;
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
      return make("div", {}, make("p", { class: "soft" }, object.title ?? "", object.description ? `: ${object.description}` : ""), ...rows);
    });
    return make("div", { class: "body" }, ...(parts.length ? parts : [make("code", {}, this.nameOf(schema))]));
  }

  field(name, schema, required) {
    const label = make("code", required.includes(name) ? { class: "required" } : {}, name);
    const words = [" ", make("span", { class: "soft" }, [this.nameOf(schema), this.boundsOf(schema)].filter(Boolean).join("; "))];
    if (schema.description) words.push(make("span", {}, ` ${schema.description}`));
    if (this.objectsIn(schema).length) return fold([label, ...words], () => this.fields(schema));
    return make("p", {}, label, ...words);
  }

  parameters(list) {
    const rows = list.map((each) => make("tr", {},
      make("td", {}, make("code", each.required ? { class: "required" } : {}, each.name)),
      make("td", {}, each.in),
      make("td", {}, [this.nameOf(each.schema), this.boundsOf(each.schema), each.description].filter(Boolean).join("; "))));
    return make("table", {}, make("tbody", {}, ...rows));
  }

  /** The commands that send the examples of an operation. */
  examples(method, path, content, base) {
    return Object.values(content.examples ?? {}).map((example) => {
      const body = JSON.stringify(example.value, null, 2).replaceAll("'", "'\\''");
      const command = `curl -sS -X ${method.toUpperCase()} ${base}${path} \\\n  -H 'content-type: application/json' -d '${body}'`;
      return make("div", {}, make("p", {}, example.summary ?? "Example"), make("pre", {}, command));
    });
  }

  operation(method, path, operation, servers) {
    const title = [make("code", { class: `method ${method}` }, method.toUpperCase()), make("code", {}, path), ` ${operation.summary}`];
    return fold(title, () => {
      const parts = [make("p", {}, operation.description ?? "")];
      if (servers.length > 1) parts.push(make("p", {}, "Also at: ", ...servers.slice(1).map((server) => make("code", {}, server.url + path))));
      if (operation.parameters?.length) parts.push(make("h4", {}, "Parameters"), this.parameters(operation.parameters));
      const content = operation.requestBody?.content["application/json"];
      if (content) parts.push(make("h4", {}, "Body"), this.fields(content.schema), ...this.examples(method, path, content, servers[0].url));
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

async function show() {
  const main = document.getElementById("operations");
  try {
    const answer = await fetch("v1/openapi.json");
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    const described = await answer.json();
    const sections = new Reference(described).sections();
    document.getElementById("about").textContent = described.info.summary;
    main.replaceChildren();
    for (const section of sections) {
      const heading = [make("h2", {}, section.tag.name), make("p", { class: "soft" }, section.tag.description ?? "")];
      section.element = make("section", {}, ...heading, ...section.operations.map((each) => each.element));
      main.append(section.element);
    }
    const linked = document.getElementById(location.hash.slice(1));
    if (linked) {
      linked.open = true;
      linked.scrollIntoView();
    }
    document.getElementById("find").addEventListener("input", (event) => {
      const wanted = event.target.value.toLowerCase().split(/\s+/).filter(Boolean);
      for (const section of sections) {
        for (const each of section.operations) each.element.hidden = !wanted.every((word) => each.words.includes(word));
        section.element.hidden = section.operations.every((each) => each.element.hidden);
      }
    });
  } catch (error) {
    main.textContent = `The OpenAPI document could not be read: ${error.message}`;
  }
}

show();
