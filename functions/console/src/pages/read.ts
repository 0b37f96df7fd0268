/** The pages that read what happened. They share most of their code, which is smaller as one file. */
export { default as ChatPage } from "./chat";
export { default as ChatsPage } from "./chats";
export { default as ConversationPage } from "./conversation";
export { default as ConversationsPage } from "./conversations";
export { default as ResponsePage } from "./response";
export { default as ResponsesPage } from "./responses";
export { default as SessionsPage } from "./sessions";
export { default as TurnPage } from "./turn";
export { default as TurnsPage } from "./turns";
