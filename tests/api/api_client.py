"""Requests of tests to the API over plain HTTP."""

import json
from typing import Any

import httpx
from tests.api.app_fixture import AppFixture

JSON = {"content-type": "application/json"}
WEATHER = {
    "name": "get_weather",
    "description": "Returns the weather.",
    "parameters": [{"name": "city", "parameter_type": "str", "description": "Where.", "required": True}],
}
STEP = ["turn_id", "step_id", "started_at", "completed_at", "step_type"]
"""The first keys of every step."""

TIME = {"name": "get_time", "description": "Tells the time.", "parameters": []}


def agent_config(**config: Any) -> dict[str, Any]:
    return {"model": "scripted/demo", "instructions": "Be brief."} | config


def create_agent(http: httpx.Client, **config: Any) -> str:
    response = http.post("/v1/agents", json={"agent_config": agent_config(**config)})
    assert response.status_code == 200, response.text
    return str(response.json()["agent_id"])


def create_session(http: httpx.Client, agent: str, name: str = "talk") -> str:
    """Create a session, and return its path."""
    response = http.post(f"/v1/agents/{agent}/session", json={"session_name": name})
    assert response.status_code == 200, response.text
    return f"/v1/agents/{agent}/session/{response.json()['session_id']}"


def open_session(http: httpx.Client, **config: Any) -> str:
    """Create an agent and a session, and return the session's path."""
    return create_session(http, create_agent(http, **config))


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def say(http: httpx.Client, session: str, content: Any, **body: Any) -> httpx.Response:
    """Create a turn with one user message."""
    return http.post(f"{session}/turn", json={"messages": [user(content)]} | body)


def post_silent(
    http: httpx.Client, app_fixture: AppFixture, path: str, body: dict[str, Any], headers: dict[str, str] | None = None
) -> httpx.Response:
    """Send a request to a `faulty/slow` model, which is silent until the client has received two heartbeats."""
    beat = ": keep-alive\n" if body.get("stream") else " "
    heard = ""
    with http.stream("POST", path, json=body, headers=headers) as response:
        for text in response.iter_text():
            heard += text
            if heard.count(beat) >= 2:
                app_fixture.faulty.silence.set()
    return httpx.Response(response.status_code, headers=response.headers, text=heard)


def turn(http: httpx.Client, session: str, content: Any, **body: Any) -> dict[str, Any]:
    """Create a turn, which must succeed, and return it."""
    response = say(http, session, content, **body)
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def stream(http: httpx.Client, session: str, content: Any, **body: Any) -> list[dict[str, Any]]:
    """Create a streamed turn, and return the payloads of its events."""
    return payloads(say(http, session, content, stream=True, **body))


def payloads(response: httpx.Response) -> list[dict[str, Any]]:
    assert response.status_code == 200, response.text
    return [event["event"]["payload"] for event in data(response) if "event" in event]


def data(response: httpx.Response) -> list[dict[str, Any]]:
    """Parse the data lines of a stream."""
    return [json.loads(line[6:]) for line in response.text.split("\n") if line.startswith("data: ")]


def answers_to(turn: dict[str, Any], *contents: str) -> list[dict[str, Any]]:
    """Return tool responses to the calls that a turn waits for."""
    calls = turn["output_message"]["tool_calls"]
    return [
        {"call_id": call["call_id"], "tool_name": call["tool_name"], "content": content}
        for call, content in zip(calls, contents, strict=True)
    ]


def resume(http: httpx.Client, session: str, turn: dict[str, Any], *contents: str, **body: Any) -> httpx.Response:
    answers = answers_to(turn, *contents)
    return http.post(f"{session}/turn/{turn['turn_id']}/resume", json={"tool_responses": answers} | body)


def turns_of(http: httpx.Client, session: str) -> list[dict[str, Any]]:
    return list(http.get(session).json()["turns"])


def assert_error(response: httpx.Response, status: int, code: str) -> dict[str, Any]:
    """Assert that the response is the standard error body, has no traceback, and does not ask for a retry."""
    assert response.status_code == status, response.text
    body: dict[str, Any] = response.json()
    assert list(body) == ["error", "detail"]
    assert [key for key in body["error"] if key != "turn_id"] == ["message", "type", "code", "param"]
    assert all(isinstance(value, str) for value in body["error"].values())
    assert body["error"]["code"] == code
    assert response.headers.get("x-should-retry") == "false"
    assert "Traceback" not in response.text
    return dict(body["error"])
