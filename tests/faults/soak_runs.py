"""The runs of a soak: turns and responses with tools, which are retried, cancelled, or joined again."""

import random
import time
from collections.abc import Callable
from typing import Protocol

from tests.faults.api import Api, Body, Reply
from tests.faults.response_scenarios import ENDED, RESPONSES, check_announced
from tests.faults.scenario import Finding, Findings
from tests.faults.tool_server import TOOLS, RecordingToolServer
from tests.faults.turn_scenarios import payloads, user

Call = Callable[[Callable[[Api], Reply]], Reply]
ATTEMPTS = 10
PAUSE_SECONDS = 0.5


class SoakRun(Protocol):
    """A run of a caller, whose label is part of its effects."""

    def __init__(self, call: Call, tools: RecordingToolServer, label: str) -> None: ...

    def prepare(self) -> bool:
        """Make what the run needs, and return whether this succeeded."""
        ...

    def act(self, chance: random.Random) -> None:
        """Send requests."""
        ...

    def check(self, api: Api) -> Findings:
        """Yield what is lost or stuck."""
        ...


def message(label: str) -> str:
    return "\n".join(f'call: {tool} {{"label": "{label}"}}' for tool in TOOLS)


def repeat(call: Call, send: Callable[[Api], Reply]) -> Reply:
    """Repeat a request until it succeeds, as a client does."""
    reply = Reply()
    for _ in range(ATTEMPTS):
        reply = call(send)
        if reply.ok or 400 <= reply.status < 409:
            break
        time.sleep(PAUSE_SECONDS)
    return reply


class SoakTurn:
    """A turn in a session of its own. Its request is repeated with its key, its stream is joined again."""

    def __init__(self, call: Call, _: RecordingToolServer, label: str) -> None:
        self._call, self._label = call, label
        self._events: list[Body] = []
        self._session = ""

    def prepare(self) -> bool:
        body = {"agent_config": {"model": "scripted/demo", "instructions": "", "toolgroups": ["desk"]}}
        agent = repeat(self._call, lambda api: api.post("/v1/agents", body)).body.get("agent_id")
        path = f"/v1/agents/{agent}/session"
        session = repeat(self._call, lambda api: api.post(path, {"session_name": "s"})).body.get("session_id")
        self._session = f"{path}/{session}"
        return agent is not None and session is not None

    def act(self, chance: random.Random) -> None:
        body = {"messages": user(message(self._label)), "stream": True}
        key = {"Idempotency-Key": self._label}
        reply = self._call(lambda api: api.post(f"{self._session}/turn", body, headers=key))
        self._events += payloads(reply)
        turn_id = next((event["turn_id"] for event in self._events if "turn_id" in event), "")
        if turn_id and chance.random() < 0.2:
            self._call(lambda api: api.post(f"{self._session}/turn/{turn_id}/cancel"))
        elif turn_id and not reply.complete:
            self._events += payloads(self._call(lambda api: api.get(f"{self._session}/turn/{turn_id}/events")))
        elif not reply.complete:
            again = repeat(self._call, lambda api: api.post(f"{self._session}/turn", body, headers=key))
            self._events += payloads(again)

    def check(self, api: Api) -> Findings:
        turns = {turn["turn_id"]: turn for turn in api.read(self._session)["turns"]}
        steps = [step for turn in turns.values() for step in turn["steps"]]
        for event in self._events:
            if event["event_type"] == "turn_start" and event["turn_id"] not in turns:
                yield Finding("lost", f"{self._session}: an announced turn")
            if event["event_type"] == "step_complete" and event["step_details"] not in steps:
                yield Finding("lost", f"{self._session}: an announced step")
            if event["event_type"] == "turn_complete" and turns.get(event["turn"]["turn_id"]) != event["turn"]:
                yield Finding("lost", f"{self._session}: an announced end")
        following = api.post(f"{self._session}/turn", {"messages": user("say: again"), "stream": False})
        if not following.ok:
            yield Finding("stuck", f"{self._session}: {following.status} {following.text[:200]}")


class SoakResponse:
    """A response, half of them in the background. Its stream is joined again, or it is cancelled."""

    def __init__(self, call: Call, tools: RecordingToolServer, label: str) -> None:
        self._call, self._label, self._tool = call, label, tools.mcp_tool
        self._events: list[Body] = []
        self._id = ""

    def prepare(self) -> bool:
        return True

    def act(self, chance: random.Random) -> None:
        background = chance.random() < 0.5
        body = {"model": "scripted/demo", "input": message(self._label), "tools": [self._tool]}
        key = {"Idempotency-Key": self._label}
        fields = {"background": True} if background else {"stream": True}
        reply = self._call(lambda api: api.post(RESPONSES, body | fields, headers=key))
        self._events += [] if background else reply.events
        made = [event["response"]["id"] for event in self._events if "response" in event]
        self._id = reply.body.get("id", "") if background else next(iter(made), "")
        if not self._id:
            return
        if chance.random() < 0.2:
            self._call(lambda api: api.post(f"{RESPONSES}/{self._id}/cancel"))
        elif not background and not reply.complete:
            self._events += self._call(lambda api: api.get(f"{RESPONSES}/{self._id}?stream=true")).events

    def check(self, api: Api) -> Findings:
        if not self._id:
            return
        stored = api.get(f"{RESPONSES}/{self._id}")
        if not stored.ok:
            yield Finding("lost", f"{self._id}: an announced response: {stored.status}")
        elif stored.body["status"] not in ENDED:
            yield Finding("stuck", f"{self._id} is {stored.body['status']}")
        else:
            for finding in check_announced(self._events, stored.body):
                yield Finding(finding.kind, f"{self._id}: {finding.text}")
