/** Pages by the path below `…/console`, which starts with a slash. */
import { signal } from "@preact/signals";
import type { ComponentChildren, JSX, TargetedMouseEvent } from "preact";
import { CONSOLE } from "./base";

export interface Place {
  path: string;
  query: URLSearchParams;
}

export type Params = Readonly<Record<string, string>>;

export interface PageProps {
  params: Params;
}

const ROOT = CONSOLE.pathname.replace(/\/$/, "");

export const place = signal<Place>(readPlace());

window.addEventListener("popstate", () => {
  place.value = readPlace();
});

function readPlace(): Place {
  const { pathname, search } = window.location;
  const path = pathname.startsWith(ROOT) ? pathname.slice(ROOT.length) : "";
  return { path: path.replace(/(?!^)\/+$/, "") || "/", query: new URLSearchParams(search) };
}

/** Return the address of a path, for links. */
export function hrefOf(path: string): string {
  return path === "/" ? ROOT : `${ROOT}${path}`;
}

export function navigate(path: string, { replace = false } = {}): void {
  history[replace ? "replaceState" : "pushState"](null, "", hrefOf(path));
  place.value = readPlace();
}

/** Return the variables of a pattern such as `/agents/:agent` in a path, or null if it does not match. */
export function matchPath(pattern: string, path: string): Params | null {
  const expected = pattern.split("/");
  const given = path.split("/");
  if (expected.length !== given.length) return null;
  const found: Record<string, string> = {};
  for (const [index, part] of expected.entries()) {
    const value = given[index] ?? "";
    if (part.startsWith(":")) {
      const decoded = decode(value);
      if (!decoded) return null;
      found[part.slice(1)] = decoded;
    } else if (part !== value) return null;
  }
  return found;
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return "";
  }
}

/** Return a path with values in the place of its variables. */
export function fillPath(pattern: string, params: Params): string {
  return pattern.replace(/:(\w+)/g, (_, name: string) => encodeURIComponent(params[name] ?? ""));
}

interface LinkProps {
  to: string;
  children: ComponentChildren;
  class?: string;
  onClick?: () => void;
  "aria-label"?: string;
  "aria-current"?: "page" | undefined;
}

export function Link({ to, onClick, ...rest }: LinkProps): JSX.Element {
  const open = (event: TargetedMouseEvent<HTMLAnchorElement>) => {
    onClick?.();
    const isOwn = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
    if (!isOwn || event.defaultPrevented) return;
    event.preventDefault();
    navigate(to);
  };
  return <a href={hrefOf(to)} onClick={open} {...rest} />;
}
