// The page of a session, and how a test talks there.
// Make an agent with a session, and return the path of its page.
export async function createSession(api, settings) {
  const agent = await api.createAgent(settings);
  return `/console/agents/${agent}/sessions/${await api.createSession(agent)}`;
}

export const messageOf = (page) => page.getByLabel("Message", { exact: true });

export const answersOf = (page) => page.locator(".run-answer");

export async function send(page, text) {
  await messageOf(page).fill(text);
  await page.getByRole("button", { name: "Send", exact: true }).click();
}
