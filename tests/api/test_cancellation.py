"""Cancellation of turns and foreground responses over HTTP."""

import threading
from typing import Any

import httpx
from tests.api.api_client import open_session, user
from tests.api.responses_client import RESPONSES, UNKNOWN, assert_refused

from stint.domain.ids import new_id

SLOW = "faulty/slow"
"""A model that is silent."""


class Background(threading.Thread):
    """A request whose response is read by another thread."""

    def __init__(self, http: httpx.Client, path: str, body: dict[str, Any]) -> None:
        super().__init__(daemon=True)
        self.http, self.path, self.body = http, path, body
        self.first = threading.Event()
        self.lines: list[str] = []

    def run(self) -> None:
        with self.http.stream("POST", self.path, json=self.body) as response:
            for line in response.iter_lines():
                if line.startswith("data:"):
                    self.lines.append(line)
                    self.first.set()


def test_a_running_turn_is_cancelled(http: httpx.Client) -> None:
    session = open_session(http, model=SLOW)
    running = Background(http, f"{session}/turn", {"messages": [user("Hello")], "stream": True})
    running.start()
    assert running.first.wait(30)
    turn_id = http.get(session).json()["turns"][0]["turn_id"]

    cancelled = http.post(f"{session}/turn/{turn_id}/cancel")
    running.join(30)

    assert (cancelled.status_code, cancelled.json()["status"]) == (200, "cancelled")
    assert '"turn_complete"' in running.lines[-1]
    assert '"status":"cancelled"' in running.lines[-1]
    assert http.post(f"{session}/turn/{turn_id}/cancel").json() == cancelled.json()


def test_a_running_response_is_cancelled(http: httpx.Client) -> None:
    running = Background(http, RESPONSES, {"model": SLOW, "input": "Hello", "stream": True})
    running.start()
    assert running.first.wait(30)
    [listed] = http.get(RESPONSES).json()["data"]

    cancelled = http.post(f"{RESPONSES}/{listed['id']}/cancel")
    running.join(30)

    assert (cancelled.status_code, cancelled.json()["status"]) == (200, "cancelled")
    assert '"response.failed"' in running.lines[-2]
    assert '"status":"cancelled"' in running.lines[-2]
    assert http.post(f"{RESPONSES}/{listed['id']}/cancel").json() == cancelled.json()


def test_what_is_not_there_cannot_be_cancelled(http: httpx.Client) -> None:
    session = open_session(http)

    assert_refused(http.post(f"{session}/turn/{new_id()}/cancel"), 404, "turn_not_found")
    assert_refused(http.post(f"{RESPONSES}/{UNKNOWN}/cancel"), 404, "response_not_found")
