import type { JSX } from "preact";
import { type Snippet, toCurl, toPython } from "../snippets";
import { Button } from "./button";
import { toast } from "./toast";

export async function copy(text: string, what: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    toast(`${what} copied`);
  } catch {
    toast("The browser did not allow copying.");
  }
}

export function CopyButton({
  text,
  what,
  label = "Copy",
}: {
  text: string;
  what: string;
  label?: string;
}): JSX.Element {
  return (
    <Button kind="quiet" onClick={() => void copy(text, what)} aria-label={`${label} ${what}`}>
      {label}
    </Button>
  );
}

/** Copy a request as a command. */
export function CopyAs({ snippet }: { snippet: Snippet }): JSX.Element {
  return (
    <div class="copy-as">
      <Button kind="quiet" onClick={() => void copy(toCurl(snippet), "curl command")}>
        Copy as curl
      </Button>
      <Button kind="quiet" onClick={() => void copy(toPython(snippet), "Python code")}>
        Copy as Python
      </Button>
    </div>
  );
}
