// MCP servers for the tests of the console. One has tools as nobody should write them.
import { createServer } from "node:http";

export const HOSTILE =
  '<img src=https://elsewhere.example/x.png onerror="alert(1)"><script>alert(2)</script> [a](javascript:alert(3)) \u202Etxt.exe';

const address = {
  type: "object",
  properties: { street: { type: "string" }, city: { type: "string", description: "Where it is" } },
  required: ["city"],
};

const TOOLS = [
  {
    name: "book",
    description: `Order a book. ${HOSTILE}`,
    inputSchema: {
      type: "object",
      properties: {
        title: { type: "string", description: `The title ${HOSTILE}` },
        size: { enum: ["small", "large"] },
        copies: { type: "integer", default: 1 },
        express: { type: "boolean" },
        address: { anyOf: [{ $ref: "#/$defs/Address" }, { type: "null" }] },
        tags: { type: "array", items: { type: "string" } },
        __proto__x: { type: "string" },
      },
      required: ["title", "size"],
      $defs: { Address: address },
    },
  },
  { name: "fail", description: "Fail.", inputSchema: { type: "object", properties: {} } },
  { name: "long_line", description: "w".repeat(100_000), inputSchema: { type: "object", properties: {} } },
  { name: "odd", description: "", inputSchema: { type: "object", properties: { a: true, b: { type: 7 } } } },
  ...Array.from({ length: 300 }, (_, index) => ({
    name: `tool_${String(index).padStart(3, "0")}`,
    description: `Number ${index}`,
    inputSchema: { type: "object", properties: {} },
  })),
];

function callHostile({ name, arguments: given }) {
  if (name === "fail") return { content: [{ type: "text", text: `No. ${HOSTILE}` }], isError: true };
  if (name === "long_line") return { content: [{ type: "text", text: "x".repeat(1_000_000) }] };
  return { content: [{ type: "text", text: JSON.stringify({ ...given, by: HOSTILE }) }] };
}

function answer({ method, params }, { tools, call }) {
  if (method === "initialize") {
    const { protocolVersion } = params;
    return { protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "hostile", version: "1" } };
  }
  if (method === "tools/list") return { tools };
  return method === "tools/call" ? call(params) : {};
}

const HOSTILE_TOOLS = { tools: TOOLS, call: callHostile };

const numbers = { a: { type: "integer" }, b: { type: "integer" } };

// A server with one tool, which adds.
export const SUMS = {
  tools: [{ name: "add", description: "Adds", inputSchema: { type: "object", properties: numbers } }],
  call: ({ arguments: { a, b } }) => ({ content: [{ type: "text", text: `${a + b}` }] }),
};

// Start a server, and return its address and what ends it.
export async function startMcp(served = HOSTILE_TOOLS) {
  const server = createServer(async (request, response) => {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const message = chunks.length ? JSON.parse(Buffer.concat(chunks).toString()) : {};
    if (request.method !== "POST" || message.id === undefined) {
      response.writeHead(request.method === "POST" ? 202 : 405).end();
      return;
    }
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify({ jsonrpc: "2.0", id: message.id, result: answer(message, served) }));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  server.unref(); // A test that fails before it stops the server must not keep the process.
  return {
    url: `http://127.0.0.1:${server.address().port}/mcp`,
    stop: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}
