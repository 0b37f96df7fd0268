/** What the model saw in a call. It is read when somebody asks for it. */
import { Fragment, type JSX } from "preact";
import { useState } from "preact/hooks";
import { addressOf, type Schemas, send } from "../api";
import { useAction } from "../components/action";
import { Button } from "../components/button";
import { CopyAs } from "../components/copy";
import { LongText } from "../components/long-text";
import { ErrorState, Skeleton } from "../components/states";
import { isRecord } from "../errors";
import { cut, formatCount } from "../format";
import { MessageView, Some } from "./message-view";
import { Json } from "../components/json-view";

type Input = Schemas["ModelInput"];

/** The path of the API with the input, below that of the step. */
export function ModelInputView({ path }: { path: string }): JSX.Element {
  const [input, setInput] = useState<Input | null>(null);
  const { isBusy, error, run } = useAction(async () => {
    const query = { start_index: input?.messages.length ?? 0 };
    const page = (await (await send("GET", path, undefined, { query })).json()) as Input;
    setInput(input ? joinPages(input, page) : page);
  });
  return (
    <div class="stack model-input">
      {!input && !error && (
        <Button onClick={run} busy={isBusy}>
          What the model saw
        </Button>
      )}
      {isBusy && !input && <Skeleton lines={4} />}
      {input && <Shown input={input} path={path} />}
      {error && <ErrorState error={error} onRetry={run} />}
      {input?.has_more && !error && (
        <Button onClick={run} busy={isBusy}>
          Load more messages ({formatCount(input.messages.length)} of {formatCount(input.message_count)})
        </Button>
      )}
    </div>
  );
}

function joinPages(before: Input, page: Input): Input {
  return {
    ...page,
    start_index: 0,
    messages: [...before.messages, ...page.messages],
    cut_texts: [...(before.cut_texts ?? []), ...(page.cut_texts ?? [])],
    shortened_results: [...(before.shortened_results ?? []), ...(page.shortened_results ?? [])],
    unknown: [...new Set([...(before.unknown ?? []), ...(page.unknown ?? [])])],
  };
}

function Shown({ input, path }: { input: Input; path: string }): JSX.Element {
  const { messages, message_count, tools, parameters, unknown = [], is_history_cut } = input;
  const notes = [
    ...(is_history_cut ? ["The model did not see the older part of the history, because it is too long."] : []),
    ...unknown,
  ];
  return (
    <>
      <h3>
        What the model saw{" "}
        <span class="hint">{message_count === 1 ? "1 message" : `${formatCount(message_count)} messages`}</span>
      </h3>
      <p class="hint">
        For <code>{cut(input.model, 200)}</code>, rebuilt from what is stored. Secrets are masked.
      </p>
      {notes.length > 0 && (
        <ul class="notes">
          {notes.slice(0, 50).map((note, index) => (
            <li key={index}>{cut(note, 1000)}</li>
          ))}
        </ul>
      )}
      <div class="messages">
        <Some items={messages} noun="messages">
          {(message, index) => (
            <MessageView key={index} message={message} number={index + 1} marks={marksOf(input, index)} />
          )}
        </Some>
      </div>
      <Parameters parameters={parameters ?? null} />
      <Tools tools={tools ?? null} omitted={input.omitted_tools ?? 0} />
      <Json value={input} label="Input of the model">
        <CopyAs snippet={{ method: "GET", url: addressOf(path).href }} />
      </Json>
    </>
  );
}

function marksOf({ cut_texts = [], shortened_results = [] }: Input, place: number): string[] {
  const text = cut_texts.find(({ message }) => message === place);
  return [
    ...(text ? [`cut here: ${formatCount(text.characters)} more characters`] : []),
    ...(shortened_results.includes(place) ? ["the model got the beginning of this result only"] : []),
  ];
}

function Parameters({ parameters }: { parameters: Readonly<Record<string, unknown>> | null }): JSX.Element {
  if (!parameters) return <p class="hint">Its parameters are not known.</p>;
  const entries = Object.entries(parameters);
  if (entries.length === 0) return <p class="hint">Parameters: those of the provider.</p>;
  return (
    <div class="labelled">
      <h3>Parameters</h3>
      <dl class="facts">
        {entries.slice(0, 50).map(([name, value]) => (
          <Fragment key={name}>
            <dt>{cut(name, 100)}</dt>
            <dd class="mono">{cut(typeof value === "string" ? value : JSON.stringify(value), 2000)}</dd>
          </Fragment>
        ))}
      </dl>
    </div>
  );
}

function Tools({ tools, omitted }: { tools: (Input["tools"] & {}) | null; omitted: number }): JSX.Element {
  if (!tools) return <p class="hint">Its tools are not known.</p>;
  if (tools.length + omitted === 0) return <p class="hint">No tools were offered.</p>;
  return (
    <div class="labelled">
      <h3>
        Tools offered <span class="hint">{formatCount(tools.length + omitted)}</span>
      </h3>
      <Some items={tools} noun="tools">
        {(tool, index) => <Tool key={index} tool={tool} />}
      </Some>
      {omitted > 0 && (
        <p class="hint">{formatCount(omitted)} more are left out because the answer would be too large.</p>
      )}
    </div>
  );
}

function Tool({ tool }: { tool: Readonly<Record<string, unknown>> }): JSX.Element {
  const described = isRecord(tool["function"]) ? tool["function"] : tool;
  const [isOpen, setOpen] = useState(false);
  return (
    <details class="part" open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <code>{cut(String(described["name"] ?? tool["type"] ?? "tool"), 100)}</code>
        <span class="part-line">{cut(String(described["description"] ?? ""), 160)}</span>
      </summary>
      {isOpen && (
        <div class="part-body">
          <LongText text={JSON.stringify(described, null, 2)} label="Definition of the tool" />
        </div>
      )}
    </details>
  );
}
