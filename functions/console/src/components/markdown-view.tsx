import { Component, type JSX } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { formatCount } from "../format";
import { BlockReader, LONGEST, MarkdownBlock } from "../markdown";
import { Button } from "./button";
import { LongText } from "./long-text";

/** So many characters are on the page, and as many more with each request for more. */
const SHOWN = 40_000;

/** While text grows, rendering takes at most this part of the time: one eighth. */
const SHARE = 8;

interface MarkdownProps {
  text: string;
  /** The text grows: its end is shown, and rendered as often as there is time. */
  isGrowing?: boolean;
}

/** Markdown that may grow. Blocks that are finished are neither parsed nor rendered again. */
export function Markdown({ text, isGrowing = false }: MarkdownProps): JSX.Element {
  const shown = usePaced(text, isGrowing);
  const reader = useRef<BlockReader | null>(null);
  reader.current ??= new BlockReader();
  const [budget, setBudget] = useState(SHOWN);
  const [hasGrown] = useState(isGrowing);
  const blocks = reader.current.read(shown);
  const [first, last] = selectBlocks(blocks, budget, hasGrown);
  const isCut = first > 0 || last < blocks.length;
  const more = isCut && (
    <Button kind="quiet" onClick={() => setBudget(budget * 2)}>
      Show more of {formatCount(shown.length)} characters
    </Button>
  );
  return (
    <div class="markdown">
      {hasGrown && more}
      {blocks.slice(first, last).map((source, index) => (
        <Block key={first + index} source={source} isGrowing={hasGrown} />
      ))}
      {!hasGrown && more}
    </div>
  );
}

/** Return which blocks to show: the first ones, or the last ones of a text that grows. */
function selectBlocks(blocks: readonly string[], budget: number, fromEnd: boolean): [number, number] {
  let left = budget;
  let count = 0;
  while (count < blocks.length && (left > 0 || count === 0)) {
    left -= blocks[fromEnd ? blocks.length - 1 - count : count]!.length + 100;
    count += 1;
  }
  return fromEnd ? [blocks.length - count, blocks.length] : [0, count];
}

/** Return a text that grows, unless the last rendering took so long that the next one must wait. */
function usePaced(text: string, isGrowing: boolean): string {
  const pace = useRef({ shown: text, next: 0, timer: 0 });
  const [, render] = useState(0);
  const { current } = pace;
  const started = performance.now();
  const isDue = !isGrowing || started >= current.next;
  const isNew = isDue && current.shown !== text;
  if (isDue) current.shown = text;
  useLayoutEffect(() => {
    const ended = performance.now();
    if (isNew) current.next = ended + SHARE * (ended - started);
    clearTimeout(current.timer);
    if (current.shown !== text) {
      current.timer = window.setTimeout(() => render((count) => count + 1), Math.max(0, current.next - ended));
    }
    return () => clearTimeout(current.timer);
  });
  return current.shown;
}

interface BlockProps {
  source: string;
  isGrowing: boolean;
}

class Block extends Component<BlockProps> {
  override shouldComponentUpdate({ source }: BlockProps): boolean {
    return source !== this.props.source;
  }

  override render(): JSX.Element {
    const { source, isGrowing } = this.props;
    if (source.length > LONGEST) return <LongText text={source} label="Text" isGrowing={isGrowing} />;
    return (
      <div>
        <MarkdownBlock source={source} />
      </div>
    );
  }
}
