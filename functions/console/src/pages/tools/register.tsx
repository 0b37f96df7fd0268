import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { addressOf, post, type Schemas } from "../../api";
import { Button } from "../../components/button";
import { CopyAs } from "../../components/copy";
import { Dialog } from "../../components/dialog";
import { Field } from "../../components/field";
import { ErrorState } from "../../components/states";
import { toast } from "../../components/toast";
import { type ApiError, isRecord, toApiError } from "../../errors";
import { navigate } from "../../router";
import { parseJson } from "../../schema";
import { faultOf, groupPath, MCP } from "./api";

const PROVIDERS: readonly { id: string; title: string; args: string }[] = [
  { id: MCP, title: "MCP server", args: "" },
  {
    id: "remote-execution",
    title: "HTTP endpoints",
    args: JSON.stringify(
      {
        tools: [
          {
            name: "get_weather",
            description: "Return the weather of a city.",
            url: "https://example.com/weather/{city}",
            parameters: { type: "object", required: ["city"], properties: { city: { type: "string" } } },
          },
        ],
      },
      null,
      2,
    ),
  },
  {
    id: "lambda-function",
    title: "Lambda functions",
    args: JSON.stringify(
      {
        tools: [
          {
            name: "get_order",
            description: "Return an order.",
            function: "get-order",
            parameters: { type: "object", required: ["id"], properties: { id: { type: "string" } } },
          },
        ],
      },
      null,
      2,
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
  const [error, setError] = useState<ApiError | null>(null);
  const [isBusy, setBusy] = useState(false);
  const fault = args.trim() && faultOf(args);
  const read = args.trim() && !fault ? parseJson(args) : null;
  const body = {
    toolgroup_id: id.trim(),
    provider_id: provider,
    ...(provider === MCP && { mcp_endpoint: { uri: endpoint.trim() } }),
    ...(isRecord(read) && { args: read }),
  } as Schemas["ToolGroupRegisterRequest"];
  const submit = async (event: Event) => {
    event.preventDefault();
    const wrong = {
      ...(!body.toolgroup_id && { id: "Enter a name." }),
      ...(provider === MCP && !endpoint.trim() && { endpoint: "Enter the address of the server." }),
      ...(fault && { args: fault }),
      ...(read !== null && !isRecord(read) && { args: "Write a JSON object, in braces." }),
    };
    setProblems(wrong);
    if (Object.keys(wrong).length > 0) return;
    setBusy(true);
    setError(null);
    try {
      await post("/v1/toolgroups", body);
      toast("Toolgroup registered");
      onClose();
      navigate(groupPath(body.toolgroup_id));
    } catch (failure) {
      setError(toApiError(failure));
      setBusy(false);
    }
  };
  const choose = (next: string) => {
    // An example is replaced, and what the reader wrote is not.
    if (PROVIDERS.some((each) => each.args === args)) setArgs(PROVIDERS.find((each) => each.id === next)?.args ?? "");
    setProvider(next);
  };
  return (
    <form class="stack" noValidate onSubmit={(event) => void submit(event)}>
      <Field label="Name" hint="Agents name the toolgroup by it, such as mcp::orders." error={problems["id"] ?? ""}>
        {(ids) => (
          <input {...ids} class="mono" value={id} maxLength={256} onInput={(e) => setId(e.currentTarget.value)} />
        )}
      </Field>
      <Field label="Provider">
        {(ids) => (
          <select {...ids} value={provider} onChange={(e) => choose(e.currentTarget.value)}>
            {PROVIDERS.map((each) => (
              <option key={each.id} value={each.id}>
                {each.title}
              </option>
            ))}
          </select>
        )}
      </Field>
      {provider === MCP && (
        <Field label="Address of the server" error={problems["endpoint"] ?? ""}>
          {(ids) => (
            <input
              {...ids}
              class="mono"
              type="url"
              placeholder="https://host/mcp"
              value={endpoint}
              onInput={(e) => setEndpoint(e.currentTarget.value)}
            />
          )}
        </Field>
      )}
      <Field
        label={provider === MCP ? "Args as JSON (optional)" : "Args as JSON"}
        hint="Credentials in them are stored encrypted, and never shown again."
        error={problems["args"] ?? ""}
      >
        {(ids) => (
          <textarea
            {...ids}
            class="mono"
            rows={provider === MCP ? 3 : 10}
            spellcheck={false}
            value={args}
            onInput={(e) => setArgs(e.currentTarget.value)}
          />
        )}
      </Field>
      {error && <ErrorState error={error} />}
      <div class="actions">
        <Button type="submit" kind="primary" busy={isBusy}>
          Register
        </Button>
        <Button onClick={onClose}>Cancel</Button>
      </div>
      <CopyAs snippet={{ method: "POST", url: addressOf("/v1/toolgroups").href, body }} />
    </form>
  );
}
