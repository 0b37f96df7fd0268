"""Hostile inputs. Each case is a generator of the requests with one such input, and of the requests before them."""

import json
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Request:
    """An HTTP request. `path` may have a query and is sent unchanged."""

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
    """The response to a request. For the worker's events, 200 is a normal return and 500 an exception."""

    status: int
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


Case = Generator[Request | Event, Answer, None]
"""Generator that yields requests of at most 6 MB and receives their responses. The test measures each of them."""

CASES: dict[str, Callable[[], Case]] = {}


def case(make: Callable[[], Case]) -> Callable[[], Case]:
    """Register a case under the name of its function."""
    assert make.__name__ not in CASES, f"there are two cases named {make.__name__}"
    CASES[make.__name__] = make
    return make


def get(path: str) -> Request:
    return Request("GET", path)


def post(path: str, body: Any) -> Request:
    """Return a POST with a JSON body. Bytes are sent unchanged."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Request("POST", path, content, {"content-type": "application/json"})


def create_session(**config: Any) -> Generator[Request | Event, Answer, str]:
    """Create an agent and a session, and return the session's path: `path = yield from create_session()`."""
    agent_config = {"model": "scripted/demo", "instructions": "", **config}
    answer = yield post("/v1/agents", {"agent_config": agent_config})
    assert answer.status == 200, answer.body
    agent = f"/v1/agents/{answer.json()['agent_id']}"
    answer = yield post(f"{agent}/session", {"session_name": "hostile"})
    return f"{agent}/session/{answer.json()['session_id']}"
