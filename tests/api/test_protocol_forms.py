"""Forms of the servers of tools, as clients of A2A and AG-UI see and answer them."""

from typing import Any

import httpx
import pytest
from tests.api import a2a_client, ag_ui_client
from tests.api.a2a_client import error_of, message, result_of, rpc, send, state_of, stream_items, text_of
from tests.api.ag_ui_client import Frontend, find_event, said, send_run
from tests.api.api_client import create_agent

BOOK = 'call: book {"date": "May 1"}'
QUESTION = "How many come on May 1?"
Body = dict[str, Any]

pytestmark = pytest.mark.usefixtures("mcp_tools")


@pytest.fixture
def agent(http: httpx.Client, mcp_server: str) -> str:
    args = {"server_label": "desk", "server_url": f"{mcp_server}/stateless/mcp"}
    return create_agent(http, toolgroups=[{"name": "builtin::mcp", "args": args}])


@pytest.mark.parametrize("guests", [4, 4.0])  # all numbers of protocol buffers are floats
def test_a_task_shows_a_form_and_takes_what_is_filled_in(http: httpx.Client, agent: str, guests: float) -> None:
    waiting = send(http, agent, BOOK)
    [asked] = a2a_client.calls_of(waiting)
    data = {"callId": asked["callId"], "approve": True, "input": {"guests": guests, "window": True}}
    done = send(http, agent, message([{"data": data}], taskId=waiting["id"]))

    assert (state_of(waiting), asked["kind"]) == ("INPUT_REQUIRED", "approval_request")
    assert asked["forms"]["form_1"]["message"] == QUESTION
    assert asked["forms"]["form_1"]["schema"]["required"] == ["guests"]
    assert QUESTION in waiting["status"]["message"]["parts"][0]["text"]
    assert "requestState" not in str(waiting)
    assert (state_of(done), 'booked {"guests": 4, "window": true}' in text_of(done)) == ("COMPLETED", True)


@pytest.mark.parametrize("data", [{"approve": True, "input": {"guests": "4"}}, {"result": "x", "input": {"guests": 4}}])
def test_a_wrong_form_of_a_task_changes_nothing(http: httpx.Client, agent: str, data: Body) -> None:
    waiting = send(http, agent, BOOK)
    [asked] = a2a_client.calls_of(waiting)
    sent = message([{"data": data | {"callId": asked["callId"]}}], taskId=waiting["id"])

    error_of(rpc(http, agent, "SendMessage", {"message": sent}), -32602, "INVALID_PARAMS")

    assert result_of(rpc(http, agent, "GetTask", {"id": waiting["id"]})) == waiting
    assert stream_items(rpc(http, agent, "SubscribeToTask", {"id": waiting["id"]}))[0]["task"] == waiting


def test_an_interrupt_shows_a_form_and_takes_what_is_filled_in(http: httpx.Client, agent: str) -> None:
    front = Frontend(http, agent)
    [asked] = front.run(said("m1", BOOK))[-1]["outcome"]["interrupts"]
    entry = {"interruptId": asked["id"], "status": "resolved"}
    events = front.run(resume=[entry | {"payload": {"approved": True, "input": {"guests": 4, "window": True}}}])

    assert QUESTION in asked["message"]
    assert asked["responseSchema"]["properties"]["input"]["required"] == ["guests"]
    assert "booked" in str(find_event(events, "TOOL_CALL_RESULT")["content"])
    assert events[-1]["outcome"] == {"type": "success"}


@pytest.mark.parametrize("filled", ["x", {"guests": "4"}, {}])
def test_a_wrong_form_of_an_interrupt_is_refused(http: httpx.Client, agent: str, filled: object) -> None:
    front = Frontend(http, agent)
    [asked] = front.run(said("m1", BOOK))[-1]["outcome"]["interrupts"]
    entry = {"interruptId": asked["id"], "status": "resolved", "payload": {"approved": True, "input": filled}}
    refused = send_run(http, agent, "1", front.messages, resume=[entry])

    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "input_mismatch")
    assert ag_ui_client.types_of(front.run())[-1] == "RUN_FINISHED"
