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
  { pattern: "/usage", title: "Usage", isListed: true, load: () => import("./pages/usage") },
  { pattern: "/keys", title: "Keys", scope: "admin", isListed: true, load: () => import("./pages/keys") },
  { pattern: "/runs", title: "Running", scope: "admin", isListed: true, load: () => import("./pages/runs") },
  { pattern: "/users", title: "End users", scope: "admin", isListed: true, load: () => import("./pages/users") },
];
