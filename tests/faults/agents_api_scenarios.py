"""Input of sessions of OpenAI's Agents API, whose turns the worker runs: each POST is repeated with its key."""

from typing import ClassVar

from tests.faults.api import Api, Body
from tests.faults.creation_scenarios import CreationScenario
from tests.faults.scenario import Finding, Findings, Scenario
from tests.faults.waiting_scenarios import LAST

SESSIONS = "/v1/agents/sessions"
ASK_USER = {"type": "function", "name": "ask_user", "description": "Ask the user.", "parameters": {"type": "object"}}
AGENT = {"model": "scripted/demo", "tools": [ASK_USER]}


def create(said: str) -> Body:
    return {"environment": {"type": "none"}, "agent": AGENT, "input": said}


def is_message(item: Body, text: str) -> bool:
    return item["type"] == "message" and text in [part["text"] for part in item["content"]]


class AgentSessionScenario(CreationScenario):
    """A POST with input. Its effect on the session is `effects` items, which is one once the worker has finished."""

    def check(self, api: Api) -> Findings:
        again = self.send(api)
        if not again.ok:
            yield Finding("stuck", f"the repeated request: {again.status} {again.text[:200]}")
            return
        for _ in range(2):
            self.cloud.work_off(LAST, redeliver=True)
        later = self.cloud.api(LAST)
        count = sum(self.is_effect(item) for item in self.list_items(later))
        if count != 1:
            yield Finding("lost" if count < 1 else "doubled", f"the accepted input is {count} times in the session")
        session = later.read(self.session)
        if session["status"] == "in_progress":
            yield Finding("stuck", f"a session whose input was accepted: {session}")

    @property
    def session(self) -> str:
        """Return the path of the session."""
        raise NotImplementedError

    def is_effect(self, item: Body) -> bool:
        """Return whether an item of the session is the input."""
        raise NotImplementedError

    def list_items(self, api: Api) -> list[Body]:
        found: list[Body] = api.read(f"{self.session}/items?limit=100")["data"]
        return found


class AgentSessionCreation(AgentSessionScenario):
    name = "create-agent-session"
    path = SESSIONS
    body: ClassVar[Body] = create("say: one")

    def check(self, api: Api) -> Findings:
        sessions = api.read(SESSIONS)["data"]
        if len(sessions) > 1:
            yield Finding("doubled", f"{len(sessions)} sessions")
        if self.reply.ok and [each["id"] for each in sessions] != [self.reply.body["id"]]:
            yield Finding("lost", "a created session")
        self.created = self.send(api).body.get("id", "")
        yield from super().check(api)

    @property
    def session(self) -> str:
        return f"{SESSIONS}/{self.created}"

    def is_effect(self, item: Body) -> bool:
        return is_message(item, "say: one")


class PostedScenario(AgentSessionScenario):
    """Events that are posted to a session, whose first turn has ended or waits for its client."""

    first: ClassVar[str] = "say: one"

    def prepare(self, api: Api) -> None:
        self.created = api.make(SESSIONS, create(self.first))["id"]

    @property
    def session(self) -> str:
        return f"{SESSIONS}/{self.created}"

    def request(self) -> tuple[str, Body | None]:
        return f"{self.session}/events", {"events": [self.event()]}

    def event(self) -> Body:
        raise NotImplementedError


class PostedMessage(PostedScenario):
    name = "post-session-message"

    def event(self) -> Body:
        content = [{"type": "input_text", "text": "say: two"}]
        return {"type": "agent.session.input.message", "input": [{"role": "user", "content": content}]}

    def is_effect(self, item: Body) -> bool:
        return is_message(item, "say: two")


class PostedResult(PostedScenario):
    name = "post-session-result"
    first = "call: ask_user {}"

    def act(self, api: Api) -> None:
        [self.action] = self.cloud.api().read(self.session)["required_actions"]
        super().act(api)

    def event(self) -> Body:
        place = {name: self.action[name] for name in ("turn_id", "call_id")}
        return {"type": "agent.session.input.tool_result", **place, "success": True, "output": "yes"}

    def is_effect(self, item: Body) -> bool:
        return (item["type"], item.get("output")) == ("function_call_output", "yes")


AGENTS_API: list[type[Scenario]] = [AgentSessionCreation, PostedMessage, PostedResult]
