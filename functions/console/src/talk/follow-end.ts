import { useEffect, useRef } from "preact/hooks";
import type { RefObject } from "preact";

/** Less than this from its end, the page follows what is added, in pixels. */
const NEAR = 120;

/** Keep the end of the page in sight while it grows, unless the reader has gone back. Return how to go there. */
export function useFollowEnd(content: RefObject<HTMLElement | null>, startsAtEnd: boolean): () => void {
  const isAtEnd = useRef(startsAtEnd);
  const go = () => {
    isAtEnd.current = true;
    window.scrollTo(0, document.documentElement.scrollHeight);
  };
  useEffect(() => {
    let height = 0;
    const read = () => {
      const { scrollHeight, clientHeight, scrollTop } = document.documentElement;
      // A page that has just grown is not one that the reader has scrolled.
      if (scrollHeight === height) isAtEnd.current = scrollHeight - clientHeight - scrollTop < NEAR;
      height = scrollHeight;
    };
    const observer = new ResizeObserver(() => {
      height = document.documentElement.scrollHeight;
      if (isAtEnd.current) go();
    });
    observer.observe(content.current!);
    window.addEventListener("scroll", read, { passive: true });
    return () => {
      observer.disconnect();
      window.removeEventListener("scroll", read);
    };
  }, []);
  return go;
}
