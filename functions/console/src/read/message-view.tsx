/** A message, an item or a result, whatever its form: who wrote it, its text, its calls. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { Button } from "../components/button";
import { Json } from "../components/json-view";
import { LongText } from "../components/long-text";
import { Badge } from "../components/values";
import { isRecord } from "../errors";
import { cut, formatCount } from "../format";
import { prettyJson } from "../talk/content";
import { textOf } from "./steps";

export interface Call {
  name: string;
  input: string;
}

/** Return the calls of a message, in the forms of both APIs. */
function callsOf(message: Readonly<Record<string, unknown>>): Call[] {
  const calls = Array.isArray(message["tool_calls"]) ? message["tool_calls"].filter(isRecord) : [];
  return calls.map((call) => {
    const called = isRecord(call["function"]) ? call["function"] : call;
    const given = called["arguments_json"] ?? called["arguments"];
    return {
      name: String(called["name"] ?? called["tool_name"] ?? ""),
      input: typeof given === "string" ? given : JSON.stringify(given),
    };
  });
}

const ROLES: Readonly<Record<string, string>> = {
  system: "System",
  developer: "Developer",
  user: "User",
  assistant: "Assistant",
  tool: "Result of a tool",
  ipython: "Result of a tool",
};

interface MessageViewProps {
  message: Readonly<Record<string, unknown>>;
  /** Marks such as "shortened". */
  marks?: readonly string[];
  /** Its place in a list, from 1. */
  number?: number;
}

export function MessageView({ message, marks = [], number }: MessageViewProps): JSX.Element {
  const role = String(message["role"] ?? "");
  const parts = message["content_parts"];
  const text = textOf(message["content"] ?? parts);
  const calls = callsOf(message);
  const isProse = role !== "tool" && calls.length === 0;
  const name = message["name"] ?? message["tool_name"] ?? message["tool_call_id"] ?? message["call_id"];
  const refusal = typeof message["refusal"] === "string" ? message["refusal"] : "";
  return (
    <article class={`message${isProse ? " message-prose" : ""}`}>
      <header class="facts-line">
        <strong>{ROLES[role] ?? (cut(role, 60) || "Message")}</strong>
        {typeof name === "string" && name && <code>{cut(name, 100)}</code>}
        {number !== undefined && <span class="hint number">{formatCount(number)}</span>}
        {marks.map((mark) => (
          <span key={mark} class="badge badge-busy">
            {mark}
          </span>
        ))}
      </header>
      {text && <LongText text={isProse ? text : prettyJson(text)} label={`Text of ${ROLES[role] ?? role}`} />}
      {refusal && <p class="part-refusal">Refused: {cut(refusal, 10_000)}</p>}
      {!text && !refusal && calls.length === 0 && <p class="hint">No text</p>}
      <Some items={calls} noun="calls">
        {(call, index) => <CallLine key={index} call={call} />}
      </Some>
    </article>
  );
}

function CallLine({ call }: { call: Call }): JSX.Element {
  return (
    <div class="labelled">
      <p class="hint">
        Calls <code>{cut(call.name, 200)}</code>
      </p>
      <LongText text={prettyJson(call.input) || "no arguments"} label={`Arguments of ${cut(call.name, 60)}`} />
    </div>
  );
}

/** An item of a response or a conversation. */
export function ItemView({ item }: { item: Readonly<Record<string, unknown>> }): JSX.Element {
  const type = String(item["type"] ?? "message");
  if (type === "message") return <MessageView message={item} />;
  const { name, input, output, error } = readItem(item);
  return (
    <article class="message">
      <header class="facts-line">
        <strong>{sentenceOf(type)}</strong>
        {name && <code>{cut(name, 100)}</code>}
        {typeof item["status"] === "string" && item["status"] !== "completed" && <Badge status={item["status"]} />}
      </header>
      {input && <LongText text={prettyJson(input)} label="Input" />}
      {output && <LongText text={prettyJson(output)} label="Output" />}
      {error && <p class="field-error state-text">{cut(error, 10_000)}</p>}
      {!input && !output && !error && <Json value={item} label={sentenceOf(type)} />}
    </article>
  );
}

function readItem(item: Readonly<Record<string, unknown>>) {
  const queries = Array.isArray(item["queries"]) ? item["queries"].join("\n") : "";
  const action = item["action"] ? JSON.stringify(item["action"]) : "";
  return {
    name: String(item["name"] ?? item["call_id"] ?? item["server_label"] ?? ""),
    input: textOf(item["arguments"] ?? item["code"] ?? (queries || action)),
    output: textOf(item["output"] ?? item["outputs"] ?? item["results"] ?? item["content"] ?? item["summary"]),
    error: textOf(item["error"]),
  };
}

/** Return words of a kind, such as "File search call" of "file_search_call". */
export function sentenceOf(type: string): string {
  const words = cut(type, 60).replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

const STEP = 20;

interface SomeProps<T> {
  items: readonly T[];
  noun: string;
  children: (item: T, index: number) => JSX.Element;
}

/** The first items of a list, and as many more with each request. */
export function Some<T>({ items, noun, children }: SomeProps<T>): JSX.Element {
  const [count, setCount] = useState(STEP);
  const left = items.length - count;
  return (
    <>
      {items.slice(0, count).map(children)}
      {left > 0 && (
        <Button kind="quiet" onClick={() => setCount(count + 5 * STEP)}>
          Show more {noun} ({formatCount(left)} left)
        </Button>
      )}
    </>
  );
}
