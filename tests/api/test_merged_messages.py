"""Requests that the running response of a conversation takes, over HTTP."""

import json

import httpx
import pytest
from tests.api.app_fixture import AppFixture, Served, wait_until
from tests.api.gated_mcp import GatedMcp
from tests.api.responses_client import RESPONSES, openai_client
from tests.api.test_when_busy import Sent, waiting_in
from tests.services.worker_fixture import MCP_TOOL

from stint.http import streaming


def test_merged_requests_get_the_running_response(
    http: httpx.Client, app_fixture: AppFixture, server: Served, gated: GatedMcp, monkeypatch: pytest.MonkeyPatch
) -> None:
    conversation = http.post("/v1/conversations", json={}).json()["id"]
    body = {"model": "scripted/demo", "conversation": conversation}
    first = Sent(http, RESPONSES, body | {"input": "call: buy {}", "tools": [MCP_TOOL], "stream": True})
    assert gated.begun.wait(60)

    merge = body | {"when_busy": "merge"}
    streamed = Sent(http, RESPONSES, merge | {"input": "two", "stream": True})
    wait_until(lambda: waiting_in(app_fixture, conversation) == 1)
    with monkeypatch.context() as hurried:
        hurried.setattr(streaming, "SILENT_SECONDS", 0.1)
        accepted = http.post(RESPONSES, json=merge | {"input": "three"})
    whole = Sent(http, RESPONSES, merge | {"input": "four"})
    wait_until(lambda: waiting_in(app_fixture, conversation) == 3)
    gated.gate.set()

    running = first.last["response"]
    assert [streamed.last["response"], streamed.events] == [running, first.events]
    whole.join(60)
    assert (whole.status, json.loads(whole.text)) == (200, running)
    assert (accepted.status_code, accepted.json()["status"]) == (202, "queued")
    own = f"{RESPONSES}/{accepted.json()['id']}"
    assert http.get(own).json() == running
    again = http.get(own, params={"stream": "true"}).text
    assert [line[6:] for line in again.splitlines() if line.startswith("data: {")] == first.events
    said = http.get(f"{own}/input_items?order=asc").json()["data"]
    assert [item["content"][0]["text"] for item in said] == ["call: buy {}", "two", "three", "four"]
    assert http.post(f"{own}/heartbeat").status_code == 200
    assert http.post(f"{own}/cancel").json() == running
    items = http.get(f"/v1/conversations/{conversation}/items?order=asc&limit=20").json()["data"]
    assert [item["type"] for item in items] == ["message", "mcp_list_tools", "mcp_call", *["message"] * 4]
    with openai_client(server) as openai:
        found = openai.conversations.items.retrieve(items[3]["id"], conversation_id=conversation)
        assert found.model_dump(include={"content"})["content"][0]["text"] == "two"
