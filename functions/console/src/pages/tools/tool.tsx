/** A tool, which can be run by hand. */
import type { JSX } from "preact";
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { addressOf, get, post, type Schemas } from "../../api";
import { Button } from "../../components/button";
import { CopyAs } from "../../components/copy";
import { PageHead } from "../../components/head";
import { EmptyState, ErrorState, Skeleton } from "../../components/states";
import { type ApiError, toApiError } from "../../errors";
import { formatName } from "../../format";
import { useResource } from "../../resource";
import { Link, type PageProps } from "../../router";
import { groupPath, ownCredentials, type Tool } from "./api";
import { useArguments } from "./arguments";
import { Credentials } from "./credentials";
import { Description } from "./description";
import { ToolResult } from "./result";
import { Json } from "../../components/json-view";

const INVOKE = "/v1/tool-runtime/invoke";

export default function ToolPage({ params }: PageProps): JSX.Element {
  const group = params["group"]!;
  const name = params["tool"]!;
  const tools = useResource(
    useCallback(
      async (signal: AbortSignal) =>
        (await get("/v1/tools", { query: { toolgroup_id: group }, headers: ownCredentials(), signal })).data,
      [group],
    ),
  );
  const tool = tools.value?.find(({ identifier }) => identifier === name);
  return (
    <div class="page">
      <PageHead
        title={formatName(name)}
        above={[
          ["/tools", "Tools"],
          [groupPath(group), formatName(group)],
        ]}
      />
      {tools.error && (
        <>
          <ErrorState error={tools.error} onRetry={tools.reload} />
          <Credentials />
        </>
      )}
      {!tools.value && !tools.error && <Skeleton lines={6} />}
      {tools.value && !tool && (
        <EmptyState title="The toolgroup has no such tool">
          <Link to={groupPath(group)}>To its tools</Link>
        </EmptyState>
      )}
      {tool && <ToolView group={group} tool={tool} />}
    </div>
  );
}

function ToolView({ group, tool }: { group: string; tool: Tool }): JSX.Element {
  return (
    <>
      <section class="card stack" aria-label="The tool">
        <Description text={tool.description} />
        <Json value={tool} label="Tool" />
      </section>
      <Run group={group} tool={tool} />
    </>
  );
}

interface Outcome {
  result: Schemas["ToolInvocationResult"] | null;
  error: ApiError | null;
  milliseconds: number;
}

function Run({ group, tool }: { group: string; tool: Tool }): JSX.Element {
  const given = useArguments(tool.input_schema);
  const [outcome, setOutcome] = useState<Outcome | null>(null);
  const [isBusy, setBusy] = useState(false);
  const current = useRef(new AbortController());
  useEffect(() => () => current.current.abort(), []);
  const name = `${group}/${tool.identifier}`;
  const submit = async (event: Event) => {
    event.preventDefault();
    const kwargs = given.submit();
    if (!kwargs) {
      // The first field with an error, after it has been drawn.
      const place = event.currentTarget as HTMLElement;
      requestAnimationFrame(() => place.querySelector<HTMLElement>("[aria-invalid=true]")?.focus());
      return;
    }
    const { signal } = (current.current = new AbortController());
    setBusy(true);
    setOutcome(null);
    const start = performance.now();
    try {
      const result = await post(INVOKE, { tool_name: name, kwargs }, { headers: ownCredentials(), signal });
      setOutcome({ result, error: null, milliseconds: performance.now() - start });
    } catch (failure) {
      const error = toApiError(failure);
      if (error.code !== "aborted") setOutcome({ result: null, error, milliseconds: 0 });
    } finally {
      setBusy(false);
    }
  };
  const body = { tool_name: name, kwargs: given.value };
  return (
    <section class="card stack" aria-label="Run the tool">
      <h2>Run it</h2>
      <form class="stack" noValidate onSubmit={(event) => void submit(event)}>
        {given.form}
        <Credentials />
        <div class="actions">
          <Button type="submit" kind="primary" busy={isBusy}>
            Run
          </Button>
          {isBusy && <Button onClick={() => current.current.abort()}>Stop waiting</Button>}
          <CopyAs snippet={{ method: "POST", url: addressOf(INVOKE).href, body }} />
        </div>
      </form>
      <div aria-live="polite">
        {outcome?.error && <ErrorState error={outcome.error} />}
        {outcome?.result && <ToolResult result={outcome.result} milliseconds={outcome.milliseconds} />}
      </div>
    </section>
  );
}
