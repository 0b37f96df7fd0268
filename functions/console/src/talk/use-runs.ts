import { useEffect } from "preact/hooks";

interface Runs {
  keep: () => void;
  close: () => void;
}

/** Keep runs for a reload, and stop to listen to them when the page is left. */
export function useRuns(runs: Runs): void {
  useEffect(() => {
    const keep = () => runs.keep();
    window.addEventListener("pagehide", keep);
    return () => {
      window.removeEventListener("pagehide", keep);
      keep();
      runs.close();
    };
  }, []);
}
