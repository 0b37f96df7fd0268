/** The pages of the console. Their code is loaded when the first one is opened. */
import type { ComponentType } from "preact";
import type { PageProps } from "./router";

export interface PageEntry {
  /** The path, with variables such as `/agents/:agent`. */
  pattern: string;
  title: string;
  /** The scope without which the page shows nothing; "": none. */
  scope: string;
  /** The page is in the navigation. */
  isListed: boolean;
  load: () => Promise<{ default: ComponentType<PageProps> }>;
}

type Name = keyof typeof import("./pages/index");

const page = (pattern: string, title: string, name: Name, scope = "use", isListed = false): PageEntry => ({
  pattern,
  title,
  scope,
  isListed,
  load: async () => ({ default: (await import("./pages/index"))[name] as ComponentType<PageProps> }),
});

/** A page of the navigation. */
const listed = (pattern: string, title: string, name: Name, scope?: string) => page(pattern, title, name, scope, true);

export const PAGES: readonly PageEntry[] = [
  listed("/", "Start", "StartPage", ""),
  listed("/agents", "Agents", "AgentsPage"),
  page("/agents/new", "New agent", "AgentFormPage"),
  page("/agents/:agent", "Agent", "AgentPage"),
  page("/agents/:agent/sessions", "Sessions", "SessionsPage"),
  page("/agents/:agent/sessions/:session", "Session", "SessionPage"),
  page("/agents/:agent/sessions/:session/turns", "Turns", "TurnsPage"),
  page("/agents/:agent/sessions/:session/turns/:turn", "Turn", "TurnPage"),
  listed("/responses", "Responses", "ResponsesPage"),
  page("/responses/new", "New response", "NewResponsePage"),
  page("/responses/:response", "Response", "ResponsePage"),
  listed("/conversations", "Conversations", "ConversationsPage"),
  page("/conversations/:conversation", "Conversation", "ConversationPage"),
  listed("/chats", "Stored chats", "ChatsPage"),
  page("/chats/:chat", "Stored chat", "ChatPage"),
  listed("/knowledge", "Knowledge", "StoresPage"),
  page("/knowledge/files", "Files", "FilesPage"),
  page("/knowledge/stores/:store", "Vector store", "StorePage"),
  page("/knowledge/stores/:store/search", "Search", "SearchPage"),
  page("/knowledge/stores/:store/files/:file", "File", "DocumentPage"),
  listed("/tools", "Tools", "GroupsPage"),
  page("/tools/:group", "Toolgroup", "GroupPage"),
  page("/tools/:group/:tool", "Tool", "ToolPage"),
  listed("/models", "Models", "ModelsPage"),
  page("/models/providers", "Providers", "ProvidersPage"),
  page("/models/shields", "Shields", "ShieldsPage"),
  listed("/usage", "Usage", "UsagePage", ""),
  listed("/keys", "Keys", "KeysPage", "admin"),
  listed("/runs", "Running", "RunsPage", "admin"),
  listed("/users", "End users", "UsersPage", "admin"),
];
