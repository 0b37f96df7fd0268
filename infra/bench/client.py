"""Client in a separate process, so that its own cost is the same for every server.

`python -m infra.bench.client URL SESSIONS TURNS MESSAGE` runs that many sessions in parallel, with that many streamed
turns each, and prints a Measure as JSON. One more turn per session warms everything up before.
"""

import json
import re
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from http.client import HTTPConnection, HTTPException
from statistics import median
from typing import Any, TypeVar
from urllib.parse import urlsplit

T = TypeVar("T")
SETUP_SECONDS = 120
TOKEN = re.compile(rb'"step_progress"|response\.output_text\.delta')


@dataclass(frozen=True)
class Measure:
    """Medians of the turns: seconds to `first_event`, `events` per second; and `turns` per second of all sessions.

    `errors` is the number of turns that were not completed.
    """

    first_event: float
    events: float
    turns: float
    errors: int


@dataclass(frozen=True)
class Turn:
    """Times of one turn; `first` event, first `token` and `end` are seconds after the request was sent."""

    first: float
    token: float
    end: float
    events: int


class Api:
    """Client of the API over one connection."""

    def __init__(self, url: str) -> None:
        self._connection = HTTPConnection(urlsplit(url).netloc, timeout=60)

    def create_agent(self, model: str = "scripted/demo") -> str:
        config = {"model": model, "instructions": "Answer briefly."}
        return str(self.post("/v1/agents", {"agent_config": config})["agent_id"])

    def create_session(self, agent: str) -> str:
        path = f"/v1/agents/{agent}/session"
        return f"{path}/{self.post(path, {'session_name': 'bench'})['session_id']}"

    def post(self, path: str, body: object) -> Any:
        return json.loads(self.call("POST", path, body))

    def call(self, method: str, path: str, body: object = None) -> bytes:
        """Send a request and return the body of its response, whose status must be 200."""
        self._send(method, path, body)
        with self._connection.getresponse() as response:
            content = response.read()
        if response.status != 200:
            raise RuntimeError(f"{method} {path}: {response.status} {content[:500]!r}")
        return content

    def stream_turn(self, session: str, message: str) -> Turn:
        turn, received = self.stream(f"{session}/turn", turn_body(message))
        if b'"turn_complete"' not in received:
            raise RuntimeError(f"no complete turn: {received[-500:]!r}")
        return turn

    def stream_response(self, message: str, previous: str = "", conversation: str = "") -> tuple[Turn, str]:
        """Stream a response that is stored, and return its times and its id."""
        body = {"model": "scripted/demo", "input": message, "stream": True, "previous_response_id": previous or None}
        body["conversation"] = conversation or None
        turn, received = self.stream("/v1/responses", body)
        if b"event: response.completed" not in received:
            raise RuntimeError(f"no complete response: {received[-500:]!r}")
        return turn, re.findall(r"resp_[0-9a-f]{32}", received.decode())[0]

    def stream(self, path: str, body: object) -> tuple[Turn, bytes]:
        """Send a request and read its stream to the end."""
        began = time.perf_counter()
        self._send("POST", path, body)
        with self._connection.getresponse() as response:
            received = response.read1()
            first = token = time.perf_counter() - began
            begun = TOKEN.search(received)
            while piece := response.read1():
                received += piece
                if not begun and (begun := TOKEN.search(received)):
                    token = time.perf_counter() - began
        return Turn(first, token, time.perf_counter() - began, received.count(b"\n\n")), received

    def close(self) -> None:
        """Close the connection, which the server might close while it is idle. The next call opens another."""
        self._connection.close()

    def _send(self, method: str, path: str, body: object) -> None:
        content = None if body is None else json.dumps(body)
        self._connection.request(method, path, content, {"Content-Type": "application/json"})


def turn_body(message: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": message}], "stream": True}


def measure(url: str, sessions: int, turns: int, message: str) -> Measure:
    agent = Api(url).create_agent()
    starting = threading.Barrier(sessions + 1)

    def hold_session() -> list[Turn | None]:
        api = Api(url)
        session = retry_while_busy(lambda: api.create_session(agent))
        retry_while_busy(lambda: api.stream_turn(session, message))
        api.close()
        starting.wait(SETUP_SECONDS)
        return [complete(api, session, message) for _ in range(turns)]

    with ThreadPoolExecutor(sessions) as pool:
        holding = [pool.submit(hold_session) for _ in range(sessions)]
        starting.wait(SETUP_SECONDS)
        began = time.perf_counter()
        attempts = [turn for session in holding for turn in session.result()]
        elapsed = time.perf_counter() - began
    done = [turn for turn in attempts if turn]
    if not done:
        raise RuntimeError(f"none of {len(attempts)} turns was completed")
    return Measure(
        first_event=median(turn.first for turn in done),
        events=median((turn.events - 1) / (turn.end - turn.first) for turn in done),
        turns=len(done) / elapsed,
        errors=len(attempts) - len(done),
    )


def retry_while_busy(do: Callable[[], T]) -> T:
    """Repeat what a busy server refuses, until it succeeds: it is not measured."""
    deadline = time.monotonic() + SETUP_SECONDS
    while True:
        try:
            return do()
        except (RuntimeError, OSError, HTTPException):
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


def complete(api: Api, session: str, message: str) -> Turn | None:
    """Run a turn, and return None if it was refused or its stream was cut."""
    try:
        return api.stream_turn(session, message)
    except (RuntimeError, OSError, HTTPException):
        api.close()
        return None


if __name__ == "__main__":
    print(json.dumps(asdict(measure(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]))))
