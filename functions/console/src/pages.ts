/** The pages of the console. Each is loaded when it is first opened. */
import type { ComponentType } from "preact";
import type { Params } from "./router";

export interface PageProps {
  params: Params;
}

export interface PageEntry {
  /** The path, with variables such as `/agents/:agent`. */
  pattern: string;
  title: string;
  /** The scope without which the page shows nothing. */
  scope?: string;
  /** The page is in the navigation. */
  isListed: boolean;
  load: () => Promise<{ default: ComponentType<PageProps> }>;
}

export const PAGES: readonly PageEntry[] = [
  { pattern: "/", title: "Start", isListed: true, load: () => import("./pages/start") },
  { pattern: "/agents", title: "Agents", scope: "use", isListed: true, load: () => import("./pages/agents") },
  {
    pattern: "/agents/new",
    title: "New agent",
    scope: "use",
    isListed: false,
    load: () => import("./pages/agent-form"),
  },
  { pattern: "/agents/:agent", title: "Agent", scope: "use", isListed: false, load: () => import("./pages/agent") },
  {
    pattern: "/agents/:agent/sessions/:session",
    title: "Session",
    scope: "use",
    isListed: false,
    load: () => import("./pages/session"),
  },
  {
    pattern: "/responses/new",
    title: "New response",
    scope: "use",
    isListed: true,
    load: () => import("./pages/response-new"),
  },
];
