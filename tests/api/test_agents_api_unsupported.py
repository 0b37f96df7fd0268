"""Parts of OpenAI's Agents API that sessions here never have, or that are refused."""

from typing import Any

import httpx
import pytest
from tests.api.agents_api_client import BETA, SESSIONS, start_session
from tests.api.app_fixture import Served
from tests.api.responses_client import openai_client


@pytest.mark.parametrize("path", ["/v1/agents/environments", "/v1/agents/environments/templates/x"])
def test_an_unsupported_part_is_refused_by_name(http: httpx.Client, path: str) -> None:
    answer = http.get(path, headers=BETA)

    assert answer.status_code == 501
    error = answer.json()["error"]
    assert path.split("/")[3] in error["message"]


def test_a_session_has_no_subagents_and_no_artifacts(http: httpx.Client, server: Served) -> None:
    with openai_client(server) as client:
        session = start_session(client)
        sessions = client.beta.agents.sessions
        assert sessions.subagents.list(session.id).data == []
        assert sessions.artifacts.list(session.id).data == []

    for part in ("subagents", "artifacts"):
        answer = http.get(f"{SESSIONS}/{session.id}/{part}/x", headers=BETA)
        assert answer.status_code == 404
        assert "'x'" in answer.json()["error"]["message"]


def test_errors_name_the_fields_of_this_api(http: httpx.Client) -> None:
    def refuse(path: str, body: dict[str, Any]) -> str:
        answer = http.post(path, json=body, headers=BETA)
        assert answer.status_code == 400, answer.text
        return str(answer.json()["error"]["param"])

    server = {
        "type": "mcp",
        "server_label": "x",
        "transport": {"type": "http", "server_url": "http://169.254.169.254/mcp"},
    }
    agent: dict[str, Any] = {"model": "scripted/demo", "tools": [server]}

    assert refuse(SESSIONS, {"environment": {"type": "none"}, "agent": {"model": "scripted/demo"}}) == "input"
    assert refuse(SESSIONS, {"environment": {"type": "none"}, "agent": agent, "input": "Hello"}) == "agent.tools"
    assert refuse("/v1/agents", agent) == "tools"


def test_the_location_of_a_web_search_is_refused_by_its_name(http: httpx.Client) -> None:
    tool = {"type": "web_search", "location": {"city": "Bern"}}
    answer = http.post("/v1/agents", json={"model": "scripted/demo", "tools": [tool]}, headers=BETA)

    assert answer.status_code == 400
    assert answer.json()["error"]["message"].startswith("tools: location: ")
