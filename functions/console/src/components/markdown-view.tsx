import { Component, type JSX } from "preact";
import { useRef } from "preact/hooks";
import { BlockReader, renderMarkdown } from "../markdown";

/** Markdown that may grow. Blocks that are finished are neither parsed nor rendered again. */
export function Markdown({ text }: { text: string }): JSX.Element {
  const reader = useRef<BlockReader | null>(null);
  reader.current ??= new BlockReader();
  return (
    <div class="markdown">
      {reader.current.read(text).map((source, index) => (
        <Block key={index} source={source} />
      ))}
    </div>
  );
}

class Block extends Component<{ source: string }> {
  override shouldComponentUpdate({ source }: { source: string }): boolean {
    return source !== this.props.source;
  }

  override render(): JSX.Element {
    // Preact assigns the value, which Trusted Types require to come from the sanitizer.
    return <div dangerouslySetInnerHTML={{ __html: renderMarkdown(this.props.source) as unknown as string }} />;
  }
}
