/** Where the pages of this area are. */
import { fillPath } from "../router";

const AGENT = "/agents/:agent";
export const SESSIONS = `${AGENT}/sessions`;
export const SESSION = `${SESSIONS}/:session`;
export const TURNS = `${SESSION}/turns`;
export const TURN = `${TURNS}/:turn`;

export const turnPath = (agent: string, session: string, turn: string) => fillPath(TURN, { agent, session, turn });
export const turnsPath = (agent: string, session: string) => fillPath(TURNS, { agent, session });
export const sessionPath = (agent: string, session: string) => fillPath(SESSION, { agent, session });
export const responsePath = (response: string) => fillPath("/responses/:response", { response });
export const conversationPath = (conversation: string) => fillPath("/conversations/:conversation", { conversation });
export const chatPath = (chat: string) => fillPath("/chats/:chat", { chat });

/** The paths of the API. */
export const API_SESSION = "/v1/agents/{agent_id}/session/{session_id}";
export const API_TURN = `${API_SESSION}/turn/{turn_id}` as const;
