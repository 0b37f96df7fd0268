"""Hostile inputs: each case is a generator of the requests that carry one, and of what has to be sent before it."""

import json
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Request:
    """An HTTP request as the app receives it. `path` may have a query; it is sent as it is."""

    method: str
    path: str
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.method} {self.path[:80]}"


@dataclass(frozen=True, slots=True)
class Event:
    """An event of the worker, as JSON text."""

    body: bytes

    def __str__(self) -> str:
        return f"event {self.body[:80]!r}"


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a request. For the worker's events, 200 stands for a return and 500 for an exception."""

    status: int
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


Case = Generator[Request | Event, Answer, None]
"""Yields requests of at most 6 MB and receives their answers. The test measures each of them."""

CASES: dict[str, Callable[[], Case]] = {}


def case(make: Callable[[], Case]) -> Callable[[], Case]:
    """Register a case by the name of its function."""
    assert make.__name__ not in CASES, f"there are two cases named {make.__name__}"
    CASES[make.__name__] = make
    return make


def get(path: str) -> Request:
    return Request("GET", path)


def post(path: str, body: Any) -> Request:
    """Return a POST of a JSON body; bytes are sent as they are."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Request("POST", path, content, {"content-type": "application/json"})


def create_session(**config: Any) -> Generator[Request | Event, Answer, str]:
    """Create an agent and a session: `path = yield from create_session()` is the session's path."""
    agent_config = {"model": "scripted/demo", "instructions": "", **config}
    answer = yield post("/v1/agents", {"agent_config": agent_config})
    assert answer.status == 200, answer.body
    agent = f"/v1/agents/{answer.json()['agent_id']}"
    answer = yield post(f"{agent}/session", {"session_name": "hostile"})
    return f"{agent}/session/{answer.json()['session_id']}"
