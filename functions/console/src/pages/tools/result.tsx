import type { JSX } from "preact";
import type { Schemas } from "../../api";
import { CopyButton } from "../../components/copy";
import { JsonView } from "../../components/json-view";
import { LongText } from "../../components/long-text";
import { Badge } from "../../components/values";
import { formatMilliseconds } from "../../format";
import { prettyJson } from "../../talk/content";

type Result = Schemas["ToolInvocationResult"];
type Image = Schemas["ImageContentItem"]["image"];

interface ToolResultProps {
  result: Result;
  milliseconds: number;
}

export function ToolResult({ result, milliseconds }: ToolResultProps): JSX.Element {
  const { content, error_message: message } = result;
  const hasFailed = Boolean(result.error_code) || Boolean(message);
  const items = typeof content === "string" ? [content] : Array.isArray(content) ? content : [content];
  const text = items.map((item) => (typeof item === "string" ? item : "text" in item ? item.text : "")).join("\n");
  return (
    <section class="stack" aria-label="Result">
      <p class="facts-line">
        <Badge status={hasFailed ? "failed" : "completed"} />
        <span class="hint number">{formatMilliseconds(milliseconds)}</span>
        {text && <CopyButton text={text} what="result" />}
      </p>
      {hasFailed && message && message !== text && <p class="field-error wrap">{message.slice(0, 4000)}</p>}
      {items.map((item, index) => {
        if (typeof item !== "string" && "image" in item) return <ResultImage key={index} image={item.image} />;
        const part = typeof item === "string" ? item : item.text;
        return part ? (
          <LongText key={index} text={prettyJson(part)} label="Text of the result" />
        ) : (
          <p key={index} class="hint">
            The result is empty.
          </p>
        );
      })}
      {result.metadata && (
        <details>
          <summary>Metadata</summary>
          <JsonView value={result.metadata} label="Metadata" />
        </details>
      )}
    </section>
  );
}

/** The formats that a browser shows as pictures only, by the beginning of their base64. */
const FORMATS: readonly (readonly [string, string])[] = [
  ["iVBOR", "png"],
  ["/9j/", "jpeg"],
  ["R0lGOD", "gif"],
  ["UklGR", "webp"],
];

function ResultImage({ image }: { image: Image }): JSX.Element {
  const data = image.data ?? "";
  const format = FORMATS.find(([start]) => data.startsWith(start))?.[1];
  if (format) return <img class="result-image" src={`data:image/${format};base64,${data}`} alt="Result of the tool" />;
  const uri = image.url?.uri;
  return <p class="hint wrap">{uri ? `An image at ${uri.slice(0, 2000)}` : "An image of an unknown format."}</p>;
}
