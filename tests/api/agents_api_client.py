"""Requests of tests to OpenAI's Agents API with OpenAI's client, and streams that a thread reads."""

import json
import threading
from collections.abc import Sequence
from contextlib import suppress
from socket import SHUT_RDWR
from types import TracebackType
from typing import Any, Self

import httpx
from openai import OpenAI
from tests.api.app_fixture import Served, wait_until
from tests.api.responses_client import MODEL

SESSIONS = "/v1/agents/sessions"
BETA = {"OpenAI-Beta": "agents=v1"}
NONE: Any = {"type": "none"}
AGENT: Any = {"model": MODEL}
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER: Any = {"type": "function", "name": "get_weather", "description": "The weather of a city.", "parameters": CITY}
CALL = 'call: get_weather {"city": "Rome"}'
Body = dict[str, Any]


def start_session(client: OpenAI, said: str = "Hello", **agent: Any) -> Any:
    """Create a session of the scripted model, whose first turn the worker is to run."""
    return client.beta.agents.sessions.create(environment=NONE, agent=AGENT | agent, input=said)


def stream_session(client: OpenAI, said: str = "Hello", **agent: Any) -> list[Any]:
    """Create a session, and return the events of its first turn."""
    return [*client.beta.agents.sessions.create(environment=NONE, agent=AGENT | agent, input=said, stream=True)]


def post_events(http: httpx.Client, session_id: str, *events: Body, **headers: str) -> httpx.Response:
    return http.post(f"{SESSIONS}/{session_id}/events", json={"events": [*events]}, headers=BETA | headers)


def message(text: str) -> Body:
    content = [{"type": "input_text", "text": text}]
    return {"type": "agent.session.input.message", "input": [{"role": "user", "content": content}]}


def result_of(call: Any, output: str = "sunny") -> Body:
    """Return the result of a function call, for its item or its required action."""
    return {
        "type": "agent.session.input.tool_result",
        "turn_id": call.turn_id,
        "call_id": call.call_id,
        "success": True,
        "output": output,
    }


CANCEL: Body = {"type": "agent.session.input.cancel"}


def text_of(events: Sequence[Any]) -> str:
    return "".join(event["delta"] for event in events if event["type"].endswith("output_text.delta"))


class OpenStream:
    """A stream of a session that a thread reads: its `events`, and the `ids` of these."""

    def __init__(self, server: Served, session_id: str, last_id: str = "", stop: str = "") -> None:
        self.events: list[Body] = []
        self.ids: list[str] = []
        self.opened = threading.Event()
        self.stop = stop
        self.url = f"{server.url}{SESSIONS}/{session_id}/events"
        self.headers = BETA | ({"Last-Event-ID": last_id} if last_id else {})
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()
        assert self.opened.wait(60)

    def read(self) -> None:
        with (
            suppress(httpx.TransportError),  # the test has closed it
            httpx.Client(trust_env=False, timeout=120) as client,
            client.stream("GET", self.url, headers=self.headers) as answer,
        ):
            assert answer.status_code == 200, answer.read()
            self.answer = answer
            for line in answer.iter_lines():
                self.opened.set()
                if line.startswith("id: "):
                    self.ids.append(line[4:])
                if line.startswith("data: "):
                    self.events.append(json.loads(line[6:]))
                    if self.events[-1]["type"] == self.stop:
                        return

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        socket = self.answer.extensions["network_stream"].get_extra_info("socket")
        with suppress(OSError):  # the stream has ended
            socket.shutdown(SHUT_RDWR)
        self.thread.join(60)

    @property
    def types(self) -> list[str]:
        return [event["type"].removeprefix("agent.session.") for event in self.events]

    def wait_for(self, kind: str, count: int = 1) -> Body:
        """Wait for an event of a type, and return it."""
        wait_until(lambda: self.types.count(kind) >= count)
        return [event for event in self.events if event["type"] == f"agent.session.{kind}"][count - 1]
