/** The pages of the console. Their code is loaded when the first one is opened. */
import type { ComponentType } from "preact";
import type { PageProps } from "./router";

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

const page = (name: keyof typeof import("./pages/index")) => async () => ({
  default: (await import("./pages/index"))[name] as ComponentType<PageProps>,
});

export const PAGES: readonly PageEntry[] = [
  { pattern: "/", title: "Start", isListed: true, load: page("StartPage") },
  { pattern: "/agents", title: "Agents", scope: "use", isListed: true, load: page("AgentsPage") },
  { pattern: "/agents/new", title: "New agent", scope: "use", isListed: false, load: page("AgentFormPage") },
  { pattern: "/agents/:agent", title: "Agent", scope: "use", isListed: false, load: page("AgentPage") },
  {
    pattern: "/agents/:agent/sessions/:session",
    title: "Session",
    scope: "use",
    isListed: false,
    load: page("SessionPage"),
  },
  { pattern: "/responses/new", title: "New response", scope: "use", isListed: false, load: page("NewResponsePage") },
  { pattern: "/agents/:agent/sessions", title: "Sessions", scope: "use", isListed: false, load: page("SessionsPage") },
  {
    pattern: "/agents/:agent/sessions/:session/turns",
    title: "Turns",
    scope: "use",
    isListed: false,
    load: page("TurnsPage"),
  },
  {
    pattern: "/agents/:agent/sessions/:session/turns/:turn",
    title: "Turn",
    scope: "use",
    isListed: false,
    load: page("TurnPage"),
  },
  { pattern: "/responses", title: "Responses", scope: "use", isListed: true, load: page("ResponsesPage") },
  { pattern: "/responses/:response", title: "Response", scope: "use", isListed: false, load: page("ResponsePage") },
  { pattern: "/conversations", title: "Conversations", scope: "use", isListed: true, load: page("ConversationsPage") },
  {
    pattern: "/conversations/:conversation",
    title: "Conversation",
    scope: "use",
    isListed: false,
    load: page("ConversationPage"),
  },
  { pattern: "/chats", title: "Stored chats", scope: "use", isListed: true, load: page("ChatsPage") },
  { pattern: "/chats/:chat", title: "Stored chat", scope: "use", isListed: false, load: page("ChatPage") },
  { pattern: "/knowledge", title: "Knowledge", scope: "use", isListed: true, load: page("StoresPage") },
  { pattern: "/knowledge/files", title: "Files", scope: "use", isListed: false, load: page("FilesPage") },
  {
    pattern: "/knowledge/stores/:store",
    title: "Vector store",
    scope: "use",
    isListed: false,
    load: page("StorePage"),
  },
  {
    pattern: "/knowledge/stores/:store/search",
    title: "Search",
    scope: "use",
    isListed: false,
    load: page("SearchPage"),
  },
  {
    pattern: "/knowledge/stores/:store/files/:file",
    title: "File",
    scope: "use",
    isListed: false,
    load: page("DocumentPage"),
  },
  { pattern: "/tools", title: "Tools", scope: "use", isListed: true, load: page("GroupsPage") },
  { pattern: "/tools/:group", title: "Toolgroup", scope: "use", isListed: false, load: page("GroupPage") },
  { pattern: "/tools/:group/:tool", title: "Tool", scope: "use", isListed: false, load: page("ToolPage") },
  { pattern: "/models", title: "Models", scope: "use", isListed: true, load: page("ModelsPage") },
  { pattern: "/models/providers", title: "Providers", scope: "use", isListed: false, load: page("ProvidersPage") },
  { pattern: "/models/shields", title: "Shields", scope: "use", isListed: false, load: page("ShieldsPage") },
  { pattern: "/usage", title: "Usage", isListed: true, load: page("UsagePage") },
  { pattern: "/keys", title: "Keys", scope: "admin", isListed: true, load: page("KeysPage") },
  { pattern: "/runs", title: "Running", scope: "admin", isListed: true, load: page("RunsPage") },
  { pattern: "/users", title: "End users", scope: "admin", isListed: true, load: page("UsersPage") },
];
