"""Turns of a session, with tools of the server and of the client."""

from typing import ClassVar

from tests.faults.api import Api, Body, Reply
from tests.faults.invocations import REMAINING
from tests.faults.scenario import LATER, Finding, Findings, Scenario, check_no_record

CLIENT_TOOL = {"name": "ask_user", "description": "Ask the user.", "parameters": []}
SERVER_CALLS = 'call: book_room {"label": "a"}\ncall: send_letter {"label": "b"}'
CALLS = f"{SERVER_CALLS}\ncall: ask_user {{}}"
ANSWERED = "turn_complete", "turn_awaiting_input"
NEXT = "say: again"
"""The message of the turn with which a check ends."""


def payloads(reply: Reply) -> list[Body]:
    """Return the payloads of a turn's events."""
    return [event["event"]["payload"] for event in reply.events if "event" in event]


def is_started(reply: Reply) -> bool:
    """Return whether the start of a turn was announced."""
    return reply.ok or any(event["event_type"] == "turn_start" for event in payloads(reply))


def user(text: str) -> list[Body]:
    return [{"role": "user", "content": text}]


class TurnScenario(Scenario):
    """A turn in a new session."""

    text: ClassVar[str] = "say: one two"
    stream: ClassVar[bool] = True
    turns: ClassVar[int] = 1
    """Turns of the session after the scenario."""

    free_at_end: ClassVar[bool] = True
    """Whether the session is free once the scenario has ended, and an ending was announced."""

    taken = False
    """Whether a check has sent the next turn."""

    def prepare(self, api: Api) -> None:
        config = {"model": "scripted/demo", "instructions": "", "toolgroups": ["desk"], "client_tools": [CLIENT_TOOL]}
        agent = api.make("/v1/agents", {"agent_config": config})["agent_id"]
        session = api.make(f"/v1/agents/{agent}/session", {"session_name": "s"})["session_id"]
        self.session = f"/v1/agents/{agent}/session/{session}"

    def act(self, api: Api) -> None:
        self.reply = api.post(f"{self.session}/turn", {"messages": user(self.message()), "stream": self.stream})

    def message(self) -> str:
        """Return the user's message, with directives to the scripted model."""
        return self.text

    def read_turns(self, api: Api) -> dict[str, Body]:
        """Return the turns of the session by their ids, without the one that a check has sent."""
        turns = api.read(self.session)["turns"]
        return {turn["turn_id"]: turn for turn in turns if turn["input_messages"][0]["content"] != NEXT}

    def inputs(self) -> dict[str, bool]:
        """Return the texts that the user has sent, and whether the turn of each was announced."""
        return {self.message(): is_started(self.reply)}

    def check_at_once(self, api: Api) -> Findings:
        """A session takes the next turn as soon as the end of its turn was announced."""
        if self.free_at_end and self.is_completed():
            yield from self._check_next(api)

    def check(self, api: Api) -> Findings:
        stored = self.read_turns(api)
        for payload in payloads(self.reply):
            yield from self._check_event(payload, stored)
        yield from self._check_failure(stored)
        if len(stored) > self.turns:
            yield Finding("doubled", f"{len(stored)} turns")
        if not self.taken:
            yield from self._check_next(api)

    def _check_event(self, event: Body, stored: dict[str, Body]) -> Findings:
        kind = event["event_type"]
        turn = event.get("turn") or stored.get(event.get("turn_id") or event.get("step_details", {}).get("turn_id"))
        if kind == "turn_start" and event["turn_id"] not in stored:
            yield Finding("lost", "an announced turn")
        if kind == "step_complete":
            step = event["step_details"]
            found = [each for each in (turn or {}).get("steps", []) if each["step_id"] == step["step_id"]]
            if len(found) > 1:
                yield Finding("doubled", f"a step of type {step['step_type']}")
            if step not in found:
                yield Finding("lost", f"an announced step of type {step['step_type']}")
        if kind in ANSWERED and stored.get(event["turn"]["turn_id"]) != event["turn"]:
            yield Finding("lost", f"an announced {kind}")

    def _check_failure(self, stored: dict[str, Body]) -> Findings:
        """A stream that ended with an error leaves no turn that succeeded."""
        failed = any("error" in event for event in self.reply.events)
        ended = [turn for turn in list(stored.values())[self.turns - 1 :] if turn["output_message"]["content"]]
        if failed and ended and not self._announced_end():
            yield Finding("lost", "the success of a turn that was announced as failed")

    def _announced_end(self) -> bool:
        return any(event["event_type"] in ANSWERED for event in payloads(self.reply))

    def is_completed(self) -> bool:
        """Return whether the client knows that the turn is complete."""
        return any(event["event_type"] == "turn_complete" for event in payloads(self.reply))

    def _check_next(self, api: Api) -> Findings:
        """The session takes another turn, whose model is told once what the user has said."""
        self.taken = True
        reply = api.post(f"{self.session}/turn", {"messages": user(NEXT), "stream": False})
        if not reply.ok or reply.body["output_message"]["content"] != "again":
            yield Finding("stuck", f"the session: {reply.status} {reply.text[:200]}")
            return
        said = self.cloud.model_requests.find(NEXT) or []
        stored = [message["content"] for turn in self.read_turns(api).values() for message in turn["input_messages"]]
        for text, announced in self.inputs().items():
            if said.count(text) > 1:
                yield Finding("doubled", f"{text!r} is {said.count(text)} times in the model's request")
            if (announced or text in stored) and text not in said:
                yield Finding("lost", f"{text!r} is not in the model's request")

    def check_deletion(self, api: Api) -> Findings:
        """Nothing of the session stays after its deletion."""
        reply = api.delete(self.session)
        self.cloud.work_off(LATER, redeliver=True)
        if not reply.ok:
            yield Finding("stuck", f"the deletion of the session: {reply.status} {reply.text[:200]}")
        yield from check_no_record(self.cloud, self.session.rpartition("/")[2])


class SimpleTurn(TurnScenario):
    name = "turn"


class UnstreamedTurn(TurnScenario):
    name = "turn-unstreamed"
    stream = False

    def is_completed(self) -> bool:
        return self.reply.ok

    def check(self, api: Api) -> Findings:
        stored = self.read_turns(api)
        answer = self.reply.body
        if "turn_id" in answer and stored.get(answer["turn_id"]) != answer:
            yield Finding("lost", "the answer of a turn")
        yield from super().check(api)


class TurnWithTools(TurnScenario):
    """Two tools of the server run; the turn then waits for its client."""

    name = "turn-with-tools"
    text = CALLS


class TurnWithServerTools(TurnScenario):
    """The model answers after two tools of the server."""

    name = "turn-with-server-tools"
    text = SERVER_CALLS


class TurnWithoutModel(TurnScenario):
    """The model has no capacity. The turn fails, and its input stays."""

    name = "turn-overloaded"
    text = "fail: overloaded"
    error_code = "model_overloaded"


class TurnOutOfTime(TurnScenario):
    """The invocation ends before the model answers. The turn fails, and its input stays."""

    name = "turn-out-of-time"
    text = "slow: 5"
    error_code = "deadline_exceeded"

    def act(self, api: Api) -> None:
        body = {"messages": user(self.text), "stream": True}
        self.reply = api.post(f"{self.session}/turn", body, headers={REMAINING: "3000"})


class ResumedTurn(TurnScenario):
    """The client answers a call, and the turn ends."""

    name = "resume"

    def prepare(self, api: Api) -> None:
        super().prepare(api)
        body = {"messages": user(CALLS), "stream": False}
        self.waiting = api.make(f"{self.session}/turn", body)

    def act(self, api: Api) -> None:
        calls = self.waiting["output_message"]["tool_calls"]
        answers = [{"call_id": call["call_id"], "tool_name": call["tool_name"], "content": "yes"} for call in calls]
        path = f"{self.session}/turn/{self.waiting['turn_id']}/resume"
        self.reply = api.post(path, {"tool_responses": answers, "stream": True})

    def inputs(self) -> dict[str, bool]:
        return {CALLS: True}

    def check(self, api: Api) -> Findings:
        stored = self.read_turns(api)
        kept = stored.get(self.waiting["turn_id"], {"steps": []})["steps"]
        missing = [step for step in self.waiting["steps"] if step not in kept]
        for step in missing:
            yield Finding("lost", f"an earlier step of type {step['step_type']}")
        yield from super().check(api)


class ApprovedCalls(ResumedTurn):
    """The client approves one call, denies another and answers a third. The approved one runs, and the turn ends."""

    name = "resume-approval"

    def prepare(self, api: Api) -> None:
        args = {"server_label": "desk", "server_url": f"{self.cloud.tools.url}/stateless", "require_approval": "always"}
        servers = [{"name": "builtin::mcp", "args": args}]
        config = {"model": "scripted/demo", "instructions": "", "toolgroups": servers, "client_tools": [CLIENT_TOOL]}
        agent = api.make("/v1/agents", {"agent_config": config})["agent_id"]
        session = api.make(f"/v1/agents/{agent}/session", {"session_name": "s"})["session_id"]
        self.session = f"/v1/agents/{agent}/session/{session}"
        self.waiting = api.make(f"{self.session}/turn", {"messages": user(CALLS), "stream": False})

    def act(self, api: Api) -> None:
        asked = self.waiting["pending_approvals"]
        calls = self.waiting["output_message"]["tool_calls"]
        answers = [
            {"call_id": call["call_id"], "tool_name": call["tool_name"], "content": "yes"}
            for call in calls
            if call["call_id"] not in asked
        ]
        approvals = [{"call_id": call_id, "approve": place == 0} for place, call_id in enumerate(asked)]
        path = f"{self.session}/turn/{self.waiting['turn_id']}/resume"
        self.reply = api.post(path, {"tool_responses": answers, "approvals": approvals, "stream": True})


TURNS: list[type[Scenario]] = [
    SimpleTurn,
    UnstreamedTurn,
    TurnWithTools,
    TurnWithServerTools,
    TurnWithoutModel,
    TurnOutOfTime,
    ResumedTurn,
    ApprovedCalls,
]
