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

const read = (name: keyof typeof import("./pages/read")) => () =>
  import("./pages/read").then((pages) => ({ default: pages[name] }));

export const PAGES: readonly PageEntry[] = [
  { pattern: "/", title: "Start", isListed: true, load: () => import("./pages/start") },
  { pattern: "/agents", title: "Agents", isListed: true, load: () => import("./pages/agents") },
  { pattern: "/agents/new", title: "New agent", isListed: false, load: () => import("./pages/agent-form") },
  { pattern: "/agents/:agent", title: "Agent", isListed: false, load: () => import("./pages/agent") },
  {
    pattern: "/agents/:agent/sessions/:session",
    title: "Session",
    isListed: false,
    load: () => import("./pages/session"),
  },
  { pattern: "/responses/new", title: "New response", isListed: false, load: () => import("./pages/response-new") },
  { pattern: "/agents/:agent/sessions", title: "Sessions", isListed: false, load: read("SessionsPage") },
  {
    pattern: "/agents/:agent/sessions/:session/turns",
    title: "Turns",
    isListed: false,
    load: read("TurnsPage"),
  },
  {
    pattern: "/agents/:agent/sessions/:session/turns/:turn",
    title: "Turn",
    isListed: false,
    load: read("TurnPage"),
  },
  { pattern: "/responses", title: "Responses", isListed: true, load: read("ResponsesPage") },
  { pattern: "/responses/:response", title: "Response", isListed: false, load: read("ResponsePage") },
  { pattern: "/conversations", title: "Conversations", isListed: true, load: read("ConversationsPage") },
  {
    pattern: "/conversations/:conversation",
    title: "Conversation",
    isListed: false,
    load: read("ConversationPage"),
  },
  { pattern: "/chats", title: "Stored chats", isListed: true, load: read("ChatsPage") },
  { pattern: "/chats/:chat", title: "Stored chat", isListed: false, load: read("ChatPage") },
];
