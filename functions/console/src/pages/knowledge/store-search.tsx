/** A search in a vector store, in its three modes side by side. */
import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { addressOf, post, type Schemas } from "../../api";
import { Button } from "../../components/button";
import { CopyAs } from "../../components/copy";
import { ChoiceField, TextField } from "../../components/field";
import { EmptyState, ErrorState, Skeleton } from "../../components/states";
import { type ApiError, toApiError } from "../../errors";
import { formatMilliseconds } from "../../format";
import { navigate, place } from "../../router";
import type { Store } from "./api";
import { storePath } from "./head";
import { wordsOf } from "./highlight";
import { type Hit, Result } from "./search-result";

const SEARCH = "/v1/vector_stores/{vector_store_id}/search";
const LONGEST_QUERY = 4096;

export type Mode = NonNullable<Schemas["SearchVectorStore"]["search_mode"]>;

const MODES: readonly { mode: Mode; title: string; hint: string }[] = [
  { mode: "vector", title: "Vector", hint: "Nearest meaning. The score is the cosine." },
  { mode: "keyword", title: "Keyword", hint: "Same words. The score is s / (s + 1) of BM25." },
  { mode: "hybrid", title: "Hybrid", hint: "Both rankings in one. 1 is first in both." },
];

interface Outcome {
  hits: readonly Hit[] | null;
  error: ApiError | null;
  milliseconds: number;
}

type Outcomes = Readonly<Partial<Record<Mode, Outcome>>>;

interface Query {
  text: string;
  count: number;
}

export function StoreSearch({ store }: { store: Store }): JSX.Element {
  const [text, setText] = useState(place.peek().query.get("q")?.slice(0, LONGEST_QUERY) ?? "");
  const [count, setCount] = useState(10);
  const [asked, setAsked] = useState<Query | null>(null);
  const [outcomes, setOutcomes] = useState<Outcomes>({});
  const [chosen, setChosen] = useState<Mode>("hybrid");
  const current = useRef(new AbortController());
  const search = (query: Query) => {
    current.current.abort();
    const { signal } = (current.current = new AbortController());
    setAsked(query);
    setOutcomes({});
    navigate(`${storePath(store.id, "/search")}?${new URLSearchParams({ q: query.text })}`, { replace: true });
    for (const { mode } of MODES) {
      void ask(store.id, mode, query, signal).then((outcome) => {
        if (!signal.aborted) setOutcomes((before) => ({ ...before, [mode]: outcome }));
      });
    }
  };
  useEffect(() => {
    if (text.trim()) search({ text, count });
    return () => current.current.abort();
  }, []);
  const submit = (event: Event) => {
    event.preventDefault();
    if (text.trim()) search({ text, count });
  };
  return (
    <section class="stack" aria-label="Search in the vector store">
      <form class="toolbar" role="search" onSubmit={submit}>
        <TextField
          label="Search for"
          type="search"
          autoComplete="off"
          maxLength={LONGEST_QUERY}
          value={text}
          onText={setText}
        />
        <ChoiceField label="Results" value={count} choices={[5, 10, 20, 50]} onChoose={setCount} />
        <Button type="submit" kind="primary" disabled={!text.trim()}>
          Search
        </Button>
      </form>
      {asked ? (
        <Comparison
          store={store.id}
          asked={asked}
          outcomes={outcomes}
          chosen={chosen}
          onChoose={setChosen}
          onRetry={() => search(asked)}
        />
      ) : (
        <EmptyState title="Search as an agent would">
          <p>The same question is asked by meaning, by words, and by both, so that you see which one finds it.</p>
        </EmptyState>
      )}
    </section>
  );
}

async function ask(store: string, mode: Mode, { text, count }: Query, signal: AbortSignal): Promise<Outcome> {
  const start = performance.now();
  try {
    const body = { query: text, max_num_results: count, search_mode: mode };
    const { data } = await post(SEARCH, body, { params: { vector_store_id: store }, signal });
    const hits = data.map((result, index) => ({ result, rank: index + 1, key: keyOf(result) }));
    return { hits, error: null, milliseconds: performance.now() - start };
  } catch (failure) {
    return { hits: null, error: toApiError(failure), milliseconds: 0 };
  }
}

/** Return what is the same for a chunk in all modes. */
function keyOf({ file_id: file, content }: Schemas["SearchResult"]): string {
  return `${file} ${content.map(({ text }) => text).join("\n")}`;
}

interface ComparisonProps {
  store: string;
  asked: Query;
  outcomes: Outcomes;
  /** The mode that a narrow screen shows. */
  chosen: Mode;
  onChoose: (mode: Mode) => void;
  onRetry: () => void;
}

function Comparison({ store, asked, outcomes, chosen, onChoose, onRetry }: ComparisonProps): JSX.Element {
  const words = useMemo(() => wordsOf(asked.text), [asked.text]);
  const ranks = useMemo(() => ranksOf(outcomes), [outcomes]);
  const body = { query: asked.text, max_num_results: asked.count, search_mode: chosen };
  return (
    <>
      <div class="mode-switch" role="group" aria-label="Mode">
        {MODES.map(({ mode, title }) => (
          <Button key={mode} aria-pressed={mode === chosen} onClick={() => onChoose(mode)}>
            {title}
          </Button>
        ))}
      </div>
      <div class="modes">
        {MODES.map(({ mode, title, hint }) => {
          const outcome = outcomes[mode];
          return (
            <section
              key={mode}
              class={`mode stack${mode === chosen ? " is-chosen" : ""}`}
              aria-label={`${title} search`}
              aria-busy={!outcome}
            >
              <header>
                <h2>{title}</h2>
                <p class="hint">
                  {hint}
                  {outcome?.hits && <span class="number"> {formatMilliseconds(outcome.milliseconds)}.</span>}
                </p>
              </header>
              {!outcome && <Skeleton lines={5} />}
              {outcome?.error && <ErrorState error={outcome.error} onRetry={onRetry} />}
              {outcome?.hits?.length === 0 && <EmptyState title="Nothing was found" />}
              {outcome?.hits && outcome.hits.length > 0 && (
                <ol class="results">
                  {outcome.hits.map((hit) => (
                    <Result
                      key={`${hit.rank} ${hit.result.file_id}`}
                      store={store}
                      hit={hit}
                      words={words}
                      elsewhere={elsewhere(ranks, mode, hit.key)}
                    />
                  ))}
                </ol>
              )}
            </section>
          );
        })}
      </div>
      <CopyAs snippet={{ method: "POST", url: addressOf(SEARCH, { vector_store_id: store }).href, body }} />
    </>
  );
}

type Ranks = ReadonlyMap<Mode, ReadonlyMap<string, number>>;

function ranksOf(outcomes: Outcomes): Ranks {
  const found = MODES.flatMap(({ mode }) => {
    const hits = outcomes[mode]?.hits;
    return hits ? [[mode, new Map(hits.map(({ key, rank }) => [key, rank]))] as const] : [];
  });
  return new Map(found);
}

/** Return the ranks of a chunk in the other modes, as far as they have answered. */
function elsewhere(ranks: Ranks, mode: Mode, key: string): string {
  return MODES.filter((other) => other.mode !== mode && ranks.has(other.mode))
    .map((other) => `${other.title.toLowerCase()} ${ranks.get(other.mode)!.get(key) ?? "–"}`)
    .join(" · ");
}
