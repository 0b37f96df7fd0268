import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { addressOf, post, type Schemas } from "../../api";
import { useAction } from "../../components/action";
import { CopyAs } from "../../components/copy";
import { Dialog } from "../../components/dialog";
import { ChoiceField, TextField } from "../../components/field";
import { Form } from "../../components/form";
import { toast } from "../../components/toast";
import { isRecord } from "../../errors";
import { navigate } from "../../router";
import { parseJson } from "../../schema";
import { faultOf, groupPath, MCP } from "./api";

const example = (tool: object, parameters: object): string =>
  JSON.stringify({ tools: [{ ...tool, parameters: { type: "object", ...parameters } }] }, null, 2);

const PROVIDERS: readonly { id: string; title: string; args: string }[] = [
  { id: MCP, title: "MCP server", args: "" },
  {
    id: "remote-execution",
    title: "HTTP endpoints",
    args: example(
      {
        name: "get_weather",
        description: "Return the weather of a city.",
        url: "https://example.com/weather/{city}",
      },
      { required: ["city"], properties: { city: { type: "string" } } },
    ),
  },
  {
    id: "lambda-function",
    title: "Lambda functions",
    args: example(
      { name: "get_order", description: "Return an order.", function: "get-order" },
      { required: ["id"], properties: { id: { type: "string" } } },
    ),
  },
];

export function Register({ isOpen, onClose }: { isOpen: boolean; onClose: () => void }): JSX.Element {
  return (
    <Dialog title="Register a toolgroup" kind="wide" isOpen={isOpen} onClose={onClose}>
      <RegisterForm onClose={onClose} />
    </Dialog>
  );
}

function RegisterForm({ onClose }: { onClose: () => void }): JSX.Element {
  const [id, setId] = useState("");
  const [provider, setProvider] = useState(MCP);
  const [endpoint, setEndpoint] = useState("");
  const [args, setArgs] = useState("");
  const [problems, setProblems] = useState<Readonly<Record<string, string>>>({});
  const fault = args.trim() && faultOf(args);
  const read = args.trim() && !fault ? parseJson(args) : null;
  const body = {
    toolgroup_id: id.trim(),
    provider_id: provider,
    ...(provider === MCP && { mcp_endpoint: { uri: endpoint.trim() } }),
    ...(isRecord(read) && { args: read }),
  } as Schemas["ToolGroupRegisterRequest"];
  const action = useAction(async () => {
    const wrong = {
      ...(!body.toolgroup_id && { id: "Enter a name." }),
      ...(provider === MCP && !endpoint.trim() && { endpoint: "Enter the address of the server." }),
      ...(fault && { args: fault }),
      ...(read !== null && !isRecord(read) && { args: "Write a JSON object, in braces." }),
    };
    setProblems(wrong);
    if (Object.keys(wrong).length > 0) return;
    await post("/v1/toolgroups", body);
    toast("Toolgroup registered");
    onClose();
    navigate(groupPath(body.toolgroup_id));
  });
  const choose = (next: string) => {
    // An example is replaced, and what the reader wrote is not.
    if (PROVIDERS.some((each) => each.args === args)) setArgs(PROVIDERS.find((each) => each.id === next)?.args ?? "");
    setProvider(next);
  };
  return (
    <Form
      action={action}
      label="Register"
      noValidate
      onCancel={onClose}
      beside={<CopyAs snippet={{ method: "POST", url: addressOf("/v1/toolgroups").href, body }} />}
    >
      <TextField
        label="Name"
        hint="Agents name the toolgroup by it, such as mcp::orders."
        error={problems["id"] ?? ""}
        class="mono"
        maxLength={256}
        value={id}
        onText={setId}
      />
      <ChoiceField
        label="Provider"
        value={provider}
        choices={PROVIDERS.map((each) => [each.id, each.title] as const)}
        onChoose={choose}
      />
      {provider === MCP && (
        <TextField
          label="Address of the server"
          error={problems["endpoint"] ?? ""}
          class="mono"
          type="url"
          placeholder="https://host/mcp"
          value={endpoint}
          onText={setEndpoint}
        />
      )}
      <TextField
        label={provider === MCP ? "Args as JSON (optional)" : "Args as JSON"}
        hint="Credentials in them are stored encrypted, and never shown again."
        error={problems["args"] ?? ""}
        class="mono"
        rows={provider === MCP ? 3 : 10}
        spellcheck={false}
        value={args}
        onText={setArgs}
      />
    </Form>
  );
}
