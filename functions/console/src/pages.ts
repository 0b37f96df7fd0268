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
    isListed: false,
    load: () => import("./pages/response-new"),
  },
  ...areaOf(
    () => import("./pages/read"),
    [
      { pattern: "/agents/:agent/sessions", title: "Sessions", page: "SessionsPage" },
      { pattern: "/agents/:agent/sessions/:session/turns", title: "Turns", page: "TurnsPage" },
      { pattern: "/agents/:agent/sessions/:session/turns/:turn", title: "Turn", page: "TurnPage" },
      { pattern: "/responses", title: "Responses", page: "ResponsesPage", isListed: true },
      { pattern: "/responses/:response", title: "Response", page: "ResponsePage" },
      { pattern: "/conversations", title: "Conversations", page: "ConversationsPage", isListed: true },
      { pattern: "/conversations/:conversation", title: "Conversation", page: "ConversationPage" },
      { pattern: "/chats", title: "Stored chats", page: "ChatsPage", isListed: true },
      { pattern: "/chats/:chat", title: "Stored chat", page: "ChatPage" },
    ],
  ),
  ...areaOf(
    () => import("./pages/knowledge"),
    [
      { pattern: "/knowledge", title: "Knowledge", page: "StoresPage", isListed: true },
      { pattern: "/knowledge/files", title: "Files", page: "FilesPage" },
      { pattern: "/knowledge/stores/:store", title: "Vector store", page: "StorePage" },
      { pattern: "/knowledge/stores/:store/search", title: "Search", page: "SearchPage" },
      { pattern: "/knowledge/stores/:store/files/:file", title: "File", page: "DocumentPage" },
    ],
  ),
  ...areaOf(
    () => import("./pages/tools"),
    [
      { pattern: "/tools", title: "Tools", page: "GroupsPage", isListed: true },
      { pattern: "/tools/:group", title: "Toolgroup", page: "GroupPage" },
      { pattern: "/tools/:group/:tool", title: "Tool", page: "ToolPage" },
    ],
  ),
  ...areaOf(
    () => import("./pages/models"),
    [
      { pattern: "/models", title: "Models", page: "ModelsPage", isListed: true },
      { pattern: "/models/providers", title: "Providers", page: "ProvidersPage" },
      { pattern: "/models/shields", title: "Shields", page: "ShieldsPage" },
    ],
  ),
  { pattern: "/usage", title: "Usage", isListed: true, load: () => import("./pages/usage") },
  { pattern: "/keys", title: "Keys", scope: "admin", isListed: true, load: () => import("./pages/keys") },
  { pattern: "/runs", title: "Running", scope: "admin", isListed: true, load: () => import("./pages/runs") },
  { pattern: "/users", title: "End users", scope: "admin", isListed: true, load: () => import("./pages/users") },
];

/** Return pages that are one download together. Each needs the scope `use`. */
function areaOf<M>(
  load: () => Promise<M>,
  pages: readonly { pattern: string; title: string; page: keyof M; isListed?: boolean }[],
): PageEntry[] {
  return pages.map(({ pattern, title, page, isListed = false }) => ({
    pattern,
    title,
    scope: "use",
    isListed,
    load: async () => ({ default: (await load())[page] as ComponentType<PageProps> }),
  }));
}
