/** One step of a turn or a response, in its place. */
import type { ComponentChildren, JSX } from "preact";
import { useState } from "preact/hooks";
import { ExternalLink } from "../components/external-link";
import { LongText } from "../components/long-text";
import { Markdown } from "../components/markdown-view";
import { Badge } from "../components/values";
import { cut } from "../format";
import { isOwn, prettyJson, readContent } from "./content";
import type { CallPart, Citation, Part, PartData, RetrievalPart, ShieldPart, TextPart } from "./transcript";

/** So much of a long text is in a line. */
const PREVIEW = 160;
const MOST_IMAGES = 20;

export function PartView({ part }: { part: Part }): JSX.Element | null {
  const data = part.shown.value;
  switch (data.kind) {
    case "text":
      return <TextView data={data} />;
    case "refusal":
      return (
        <p class="part-refusal">
          <strong>The model refused:</strong> {cut(data.text, 10_000)}
        </p>
      );
    case "reasoning":
      return <Reasoning data={data} />;
    case "call":
      return <Call data={data} />;
    case "shield":
      return <Shield data={data} />;
    case "retrieval":
      return <Retrieval data={data} />;
    case "approval":
      return <Approval data={data} />;
    case "note":
      return <Note data={data} />;
  }
}

function TextView({ data }: { data: TextPart }): JSX.Element {
  const { citations, isDone } = data;
  return (
    <div>
      <Markdown text={isDone ? withMarkers(data.text, citations) : data.text} isGrowing={!isDone} />
      {citations.length > 0 && <Sources citations={citations} />}
    </div>
  );
}

function Sources({ citations }: { citations: readonly Citation[] }): JSX.Element {
  return (
    <ol class="sources" aria-label="Sources">
      {distinct(citations)
        .slice(0, 100)
        .map(({ title, url }) => (
          <li key={`${title} ${url}`}>
            <ExternalLink url={url ?? ""}>{cut(title, 200)}</ExternalLink>
          </li>
        ))}
    </ol>
  );
}

function distinct(citations: readonly Citation[]): readonly Citation[] {
  return [...new Map(citations.map((each) => [`${each.title}\n${each.url}`, each])).values()];
}

const RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹";

/** Return a text with the number of each source where it is cited. */
function withMarkers(text: string, citations: readonly Citation[]): string {
  if (!citations.some(({ index }) => index !== null) || text.length > 200_000) return text;
  const sources = distinct(citations).map(({ title, url }) => `${title}\n${url}`);
  const characters = [...text];
  for (const { title, url, index } of [...citations].reverse()) {
    if (index === null) continue;
    const number = String(sources.indexOf(`${title}\n${url}`) + 1);
    characters.splice(index, 0, [...number].map((digit) => RAISED[Number(digit)]).join(""));
  }
  return characters.join("");
}

/** A row that opens. What is inside exists while it is open. */
function Details({
  summary,
  isOpen = false,
  children,
}: {
  summary: ComponentChildren;
  isOpen?: boolean;
  children: () => ComponentChildren;
}): JSX.Element {
  const [chosen, setChosen] = useState<boolean | null>(null);
  const open = chosen ?? isOpen;
  return (
    <details class="part" open={open} onToggle={(event) => event.currentTarget.open !== open && setChosen(!open)}>
      <summary>{summary}</summary>
      {open && <div class="part-body">{children()}</div>}
    </details>
  );
}

function Reasoning({ data }: { data: TextPart }): JSX.Element {
  const line = data.text.slice(-PREVIEW).replace(/\s+/g, " ");
  return (
    <Details
      summary={
        <>
          <span class="part-label">{data.isDone ? "Reasoning" : "Reasoning …"}</span>
          <span class="part-line">{data.isDone ? cut(data.text, PREVIEW) : line}</span>
        </>
      }
    >
      {() => <Markdown text={data.text} isGrowing={!data.isDone} />}
    </Details>
  );
}

function Call({ data }: { data: CallPart }): JSX.Element {
  const { label, name, input, output, status, error, images } = data;
  const result = readContent(output);
  return (
    <div class="parts">
      <Details
        isOpen={status === "failed"}
        summary={
          <>
            <span class="part-label">{label}</span>
            {name && <code>{cut(name, 100)}</code>}
            <span class="part-line mono">{cut(input, PREVIEW)}</span>
            <Badge status={status} />
          </>
        }
      >
        {() => (
          <>
            <Labelled title={label === "Code" ? "Code" : "Arguments"}>
              <LongText text={prettyJson(input) || "none"} label="Arguments" />
            </Labelled>
            {(output !== null || status === "completed") && (
              <Labelled title="Result">
                <LongText text={prettyJson(result.text) || "empty"} label="Result" />
              </Labelled>
            )}
            {error && (
              <Labelled title="Error">
                <LongText text={error} label="Error" />
              </Labelled>
            )}
            {result.links.map((link) => (
              <ExternalLink key={link} url={link}>
                {cut(link, PREVIEW)}
              </ExternalLink>
            ))}
          </>
        )}
      </Details>
      {images.length > 0 && <Images sources={images} />}
    </div>
  );
}

function Labelled({ title, children }: { title: string; children: ComponentChildren }): JSX.Element {
  return (
    <div class="labelled">
      <p class="hint">{title}</p>
      {children}
    </div>
  );
}

function Shield({ data }: { data: ShieldPart }): JSX.Element {
  const { isDone, violation, metadata } = data;
  const tool = metadata["tool_name"];
  const where = typeof tool === "string" ? ` of ${tool}` : "";
  const summary = (
    <>
      <span class="part-label">Shield{where}</span>
      <span class="part-line">{violation || (isDone ? "nothing found" : "checks …")}</span>
      {violation && <Badge status="blocked" />}
    </>
  );
  if (Object.keys(metadata).length === 0 && violation.length < PREVIEW / 2)
    return <p class="part part-flat">{summary}</p>;
  const details = [violation, JSON.stringify(metadata, null, 2)].filter(Boolean).join("\n\n");
  return <Details summary={summary}>{() => <LongText text={details} label="Details of the shield" />}</Details>;
}

function Retrieval({ data }: { data: RetrievalPart }): JSX.Element {
  const { text } = readContent(data.content);
  return (
    <Details
      summary={
        <>
          <span class="part-label">{data.stores || !data.isDone ? "Retrieval" : "Summary of what came before"}</span>
          <span class="part-line">{data.isDone ? cut(text, PREVIEW) : "searches …"}</span>
        </>
      }
    >
      {() => (
        <>
          {data.stores && <p class="hint">Searched: {cut(data.stores, 1000)}</p>}
          <LongText text={text} label="What was found" />
        </>
      )}
    </Details>
  );
}

function Approval({ data }: { data: Extract<PartData, { kind: "approval" }> }): JSX.Element {
  return (
    <Details
      summary={
        <>
          <span class="part-label">{cut(data.server, 60)} asks for approval</span>
          <code>{cut(data.name, 100)}</code>
          <span class="part-line mono">{cut(data.input, PREVIEW)}</span>
        </>
      }
    >
      {() => <LongText text={prettyJson(data.input)} label="Arguments" />}
    </Details>
  );
}

function Note({ data }: { data: Extract<PartData, { kind: "note" }> }): JSX.Element {
  const title = cut(data.title, 500);
  if (data.lines.length === 0) return <p class={data.isFailed ? "field-error" : "hint"}>{title}</p>;
  return (
    <Details summary={<span class="part-label">{title}</span>}>
      {() => <LongText text={data.lines.join("\n")} label={title} />}
    </Details>
  );
}

export function Images({ sources }: { sources: readonly string[] }): JSX.Element {
  return (
    <div class="images">
      {sources
        .filter(isOwn)
        .slice(0, MOST_IMAGES)
        .map((source, index) => (
          <img key={index} src={source} alt={`Image ${index + 1}`} />
        ))}
    </div>
  );
}
