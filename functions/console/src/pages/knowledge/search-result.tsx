import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { Schemas } from "../../api";
import { Button } from "../../components/button";
import { formatCount, formatName } from "../../format";
import { Link } from "../../router";
import { documentPath } from "./head";
import { firstMatch, Highlighted } from "./highlight";

export interface Hit {
  result: Schemas["SearchResult"];
  rank: number;
  key: string;
}

/** Characters of an excerpt, and of a whole chunk. Inserted chunks may be longer. */
const EXCERPT = 320;
const BEFORE = 80;
const LONGEST = 20_000;

interface ResultProps {
  store: string;
  hit: Hit;
  words: ReadonlySet<string>;
  /** The ranks in the other modes. */
  elsewhere: string;
}

export function Result({ store, hit: { result, rank }, words, elsewhere }: ResultProps): JSX.Element {
  const [isWhole, setWhole] = useState(false);
  const text = result.content.map((part) => part.text).join("\n");
  const start = Math.max(0, Math.min(firstMatch(text.slice(0, LONGEST), words) - BEFORE, text.length - EXCERPT));
  const isLong = text.length > EXCERPT;
  const shown = isWhole || !isLong ? text.slice(0, LONGEST) : text.slice(start, start + EXCERPT);
  return (
    <li class="card result">
      <p class="result-head">
        <span class="rank number" aria-label={`Rank ${rank}`}>
          {rank}
        </span>
        <Link to={documentPath(store, result.file_id)}>{formatName(result.filename) || result.file_id}</Link>
        <span class="score">
          <span class="number" title={String(result.score)}>
            {result.score.toFixed(3)}
          </span>
          <meter min={0} max={1} value={result.score} aria-label="Score" />
        </span>
      </p>
      <p class="prose">
        {!isWhole && isLong && start > 0 && "… "}
        <Highlighted text={shown} words={words} />
        {!isWhole && isLong && start + EXCERPT < text.length && " …"}
      </p>
      <p class="result-foot hint">
        {elsewhere && <span class="number">Rank in {elsewhere}</span>}
        {isLong && (
          <Button kind="quiet" aria-expanded={isWhole} onClick={() => setWhole(!isWhole)}>
            {isWhole ? "Show less" : `Show all ${formatCount(Math.min(text.length, LONGEST))} characters`}
          </Button>
        )}
      </p>
    </li>
  );
}
