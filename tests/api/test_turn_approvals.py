"""Approvals of calls over HTTP, with a real MCP server."""

from typing import Any

import httpx
import pytest
from llama_stack_client import LlamaStackClient
from tests.api.api_client import assert_error, data, open_session, payloads, say, stream, turn

ADD = 'call: add {"a": 1, "b": 2}'
Body = dict[str, Any]


@pytest.fixture
def session(http: httpx.Client, mcp: str, mcp_server: str) -> str:
    """Return a session whose agent asks before it calls the tool of an MCP server. `mcp` allows its address."""
    args = {"server_label": "sums", "server_url": f"{mcp_server}/mcp", "require_approval": "always"}
    return open_session(http, toolgroups=[{"name": "builtin::mcp", "args": args}])


def approve(http: httpx.Client, session: str, paused: Body, **body: Any) -> httpx.Response:
    approvals = [{"call_id": call_id, "approve": True} for call_id in paused["pending_approvals"]]
    given = {"tool_responses": [], "approvals": approvals} | body
    return http.post(f"{session}/turn/{paused['turn_id']}/resume", json=given)


@pytest.mark.parametrize("streamed", [True, False])
def test_a_call_runs_after_its_approval(http: httpx.Client, session: str, *, streamed: bool) -> None:
    paused = stream(http, session, ADD)[-1]["turn"] if streamed else turn(http, session, ADD)
    calls = paused["output_message"]["tool_calls"]

    answer = approve(http, session, paused, stream=streamed)

    done = payloads(answer)[-1]["turn"] if streamed else answer.json()
    assert (paused["status"], paused["pending_approvals"]) == ("awaiting_input", [call["call_id"] for call in calls])
    assert done["output_message"]["content"] == "add answered: 3"
    assert "pending_approvals" not in done
    assert http.get(f"{session}/turn/{done['turn_id']}").json() == done


def test_the_reason_of_a_denial_is_told_to_the_model(http: httpx.Client, session: str) -> None:
    paused = turn(http, session, ADD)
    [call_id] = paused["pending_approvals"]

    done = approve(http, session, paused, approvals=[{"call_id": call_id, "approve": False, "reason": "Not now."}])

    told = "add answered: The user did not approve this call. Not now."
    assert done.json()["output_message"]["content"] == told


def test_a_stream_can_be_rejoined_after_any_event(http: httpx.Client, session: str) -> None:
    first = say(http, session, ADD, stream=True)
    paused = payloads(first)[-1]["turn"]
    second = approve(http, session, paused, stream=True)
    path = f"{session}/turn/{paused['turn_id']}/events"
    numbers = [line[4:] for answer in (first, second) for line in answer.text.split("\n") if line.startswith("id: ")]

    replayed = http.get(path)

    assert numbers == [str(number) for number in range(len(numbers))]
    assert data(replayed) == [*data(first), *data(second)]
    last = len(data(first)) - 1
    assert data(http.get(path, headers={"last-event-id": str(last)})) == data(second)


def test_a_repeated_request_gets_the_same_answer(http: httpx.Client, session: str) -> None:
    paused = turn(http, session, ADD)
    first = approve(http, session, paused, stream=True)

    again = approve(http, session, paused, stream=True)

    assert again.text == first.text


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"approvals": []}, "approvals_mismatch"),
        ({"approvals": None}, "approvals_mismatch"),
        ({"approvals": [{"call_id": "nosuch", "approve": True}]}, "approvals_mismatch"),
        ({"approvals": [{"call_id": "nosuch"}]}, "invalid_request"),
        ({"approvals": [{"call_id": "nosuch", "approve": "yes"}]}, "invalid_request"),
        ({"approvals": [{"call_id": "nosuch", "approve": True}] * 1_001}, "invalid_request"),
    ],
)
def test_answers_that_do_not_match_are_refused(http: httpx.Client, session: str, body: Body, code: str) -> None:
    paused = turn(http, session, ADD)

    error = assert_error(approve(http, session, paused, **body), 400, code)

    assert error["param"].startswith("approvals")
    assert http.get(f"{session}/turn/{paused['turn_id']}").json() == paused


def test_more_calls_than_a_request_may_approve_are_refused(http: httpx.Client, session: str) -> None:
    calls = "\n".join(f'call: add {{"a": {number}, "b": 0}}' for number in range(129))
    paused = turn(http, session, calls)
    ids = paused["pending_approvals"]

    refused = approve(http, session, paused)
    done = approve(http, session, paused, approvals=[{"call_id": each, "approve": False} for each in ids])

    assert len(ids) == 129
    assert assert_error(refused, 400, "too_many_approvals")["param"] == "approvals"
    assert done.json()["status"] == "completed"


def test_a_client_of_llama_stack_reads_a_turn_that_waits(http: httpx.Client, session: str) -> None:
    paused = turn(http, session, ADD)
    client = LlamaStackClient(base_url=str(http.base_url), http_client=http)
    _, _, _, agent, _, session_id = session.split("/")

    read = client.agents.turn.retrieve(paused["turn_id"], agent_id=agent, session_id=session_id)

    assert [call.tool_name for call in read.output_message.tool_calls or []] == ["add"]
