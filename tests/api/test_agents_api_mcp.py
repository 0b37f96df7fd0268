"""MCP servers in sessions of OpenAI's Agents API: steering while a tool runs, and approvals of calls."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from openai import OpenAI
from tests.api.agents_api_client import OpenStream, message, post_events, start_session
from tests.api.app_fixture import AppFixture, Served
from tests.api.gated_mcp import GatedMcp
from tests.api.responses_client import openai_client

SHOP: Any = {
    "type": "mcp",
    "server_label": "shop",
    "transport": {"type": "http", "server_url": "http://127.0.0.1:9/mcp"},
}


@pytest.fixture
def client(server: Served) -> Iterator[OpenAI]:
    with openai_client(server) as client:
        yield client


def test_a_message_steers_the_running_turn(
    client: OpenAI, http: httpx.Client, server: Served, app_fixture: AppFixture, gated: GatedMcp
) -> None:
    session = start_session(client, "Hello", tools=[SHOP])
    app_fixture.run_waiting()
    with OpenStream(server, session.id) as stream:
        post_events(http, session.id, message("call: buy {}"))
        assert gated.begun.wait(60)
        post_events(http, session.id, message("Buy two, please"))
        gated.gate.set()
        stream.wait_for("idle")

    inputs = [
        event for event in stream.events if event["type"].endswith("item.added") and event["output_index"] is None
    ]
    assert [item["item"]["content"][0]["text"] for item in inputs] == ["call: buy {}", "Buy two, please"]
    assert stream.types.count("turn.created") == 1
    assert len(client.beta.agents.sessions.turns.list(session.id).data) == 2
    with OpenStream(server, session.id, stream.ids[0], stop="agent.session.idle") as again:
        again.wait_for("idle")
    assert again.ids == stream.ids[1:]


@pytest.mark.parametrize("decision", ["approve", "deny", "cancel"])
def test_a_call_waits_for_approval(
    client: OpenAI, http: httpx.Client, server: Served, app_fixture: AppFixture, gated: GatedMcp, decision: str
) -> None:
    gated.gate.set()
    session = start_session(client, "call: buy {}", tools=[SHOP | {"require_approval": "always"}])
    app_fixture.run_waiting()
    session = client.beta.agents.sessions.retrieve(session.id)
    action: Any = session.required_actions[0]
    assert (session.status, action.type) == ("requires_action", "mcp_approval_request")
    assert (action.request.server_label, action.request.name) == ("shop", "buy")

    with OpenStream(server, session.id) as stream:
        response = {"type": "mcp_tool_call", "decision": decision}
        kind = "agent.session.input.mcp_approval_request_result"
        answer = post_events(http, session.id, {"type": kind, "request_id": action.request_id, "response": response})
        assert answer.status_code == 202, answer.text
        stream.wait_for("idle")

    assert gated.calls == (["buy"] if decision == "approve" else [])
    [call] = [each for each in client.beta.agents.sessions.items.list(session.id) if each.type == "mcp_call"]
    assert call.status == ("completed" if decision == "approve" else "failed")
