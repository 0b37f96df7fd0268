"""Calls of MCP servers' tools that wait for the client's consent."""

from collections.abc import Callable
from typing import Any

import httpx
import pytest
from tests.api.responses_client import (
    Body,
    assert_refused,
    follow,
    get,
    item_of,
    kinds,
    post,
    respond,
    text_of,
    types_of,
    user,
)

from stint.services.responses import input_items

ADD = 'call: add {"a": 1, "b": 2}'
TOTAL = 'call: total {"numbers": [1, 2]}'
Hosted = Callable[..., Body]
Continue = Callable[[Body, list[Body]], Body]


@pytest.fixture
def hosted(mcp: str, mcp_server: str) -> Hosted:
    """Make a tool of the MCP server whose calls wait for consent."""

    def make(approval: Any = "always", **fields: Any) -> Body:
        own = {"type": "mcp", "server_label": "sums", "server_url": f"{mcp_server}/mcp", "require_approval": approval}
        return own | {"allowed_tools": ["add", "total", "boom"]} | fields

    return make


@pytest.fixture(params=["previous_response_id", "items", "conversation", "references"])
def way(request: pytest.FixtureRequest) -> str:
    """How a client goes on."""
    return str(request.param)


@pytest.fixture
def begin(http: httpx.Client, hosted: Hosted, way: str) -> Callable[..., Body]:
    """Ask for calls that wait for consent."""

    def begin(said: str) -> Body:
        conversation = http.post("/v1/conversations").json()["id"] if way == "conversation" else None
        store = False if way == "items" else None
        return respond(http, said, tools=[hosted()], conversation=conversation, store=store)

    return begin


@pytest.fixture
def resume(http: httpx.Client, hosted: Hosted, way: str) -> Continue:
    """Answer what a response asked for."""

    def resume(asked: Body, answers: list[Body]) -> Body:
        tools, conversation = [hosted()], asked["conversation"]
        match way:
            case "previous_response_id":
                return respond(http, answers, previous_response_id=asked["id"], tools=tools)
            case "conversation":
                return respond(http, answers, conversation=conversation, tools=tools)
            case "items":
                return respond(http, [user("go"), *asked["output"], *answers], tools=tools, store=False)
            case _:
                told = [{"type": "item_reference", "id": item["id"]} for item in asked["output"]]
                return respond(http, [user("go"), *told, *answers], tools=tools)

    return resume


def answer_to(request: Body, approve: bool = True, **fields: Any) -> Body:
    return {"type": "mcp_approval_response", "approval_request_id": request["id"], "approve": approve} | fields


def asks_of(response: Body) -> list[Body]:
    return [item for item in response["output"] if item["type"] == "mcp_approval_request"]


def test_an_approved_call_is_run(begin: Callable[..., Body], resume: Continue) -> None:
    asked = begin(ADD)
    [request] = asks_of(asked)

    answered = resume(asked, [answer_to(request)])

    assert types_of(asked) == ["mcp_list_tools", "mcp_approval_request"]
    assert asked["status"] == "completed"
    assert (request["server_label"], request["name"], request["arguments"]) == ("sums", "add", '{"a": 1, "b": 2}')
    assert types_of(answered) == ["mcp_list_tools", "mcp_call", "message"]
    call = item_of(answered, "mcp_call")
    assert (call["approval_request_id"], call["output"]) == (request["id"], "3")
    assert text_of(answered) == "add answered: 3"


@pytest.mark.parametrize("way", ["previous_response_id"], indirect=True)
def test_a_call_that_is_not_approved_is_not_run(begin: Callable[..., Body], resume: Continue) -> None:
    asked = begin(ADD)

    answered = resume(asked, [answer_to(asks_of(asked)[0], approve=False, reason="Too dear.")])

    assert types_of(answered) == ["mcp_list_tools", "message"]
    assert "did not approve this call. Too dear." in text_of(answered)


@pytest.mark.parametrize("way", ["previous_response_id"], indirect=True)
def test_of_two_calls_one_may_be_approved(begin: Callable[..., Body], resume: Continue) -> None:
    asked = begin(f"{ADD}\n{TOTAL}")
    first, second = asks_of(asked)

    answered = resume(asked, [answer_to(second), answer_to(first, approve=False)])

    assert item_of(answered, "mcp_call")["name"] == "total"
    assert "did not approve" in text_of(answered)


@pytest.mark.parametrize("way", ["previous_response_id"], indirect=True)
def test_a_call_without_consent_is_given_up_when_the_client_goes_on(
    begin: Callable[..., Body], resume: Continue
) -> None:
    asked = begin(ADD)

    answered = resume(asked, [user("say: Never mind")])

    assert (types_of(answered), text_of(answered)) == (["mcp_list_tools", "message"], "Never mind")


@pytest.mark.parametrize(
    ("approval", "waiting"),
    [
        ("always", ["add", "total"]),
        (None, ["add", "total"]),
        ({"always": {"tool_names": ["add"]}}, ["add"]),
    ],
)
def test_consent_is_asked_for_as_the_request_says(
    http: httpx.Client, hosted: Hosted, approval: Any, waiting: list[str]
) -> None:
    response = respond(http, f"{ADD}\n{TOTAL}", tools=[hosted(approval)])

    assert [request["name"] for request in asks_of(response)] == waiting
    ran = [item["name"] for item in response["output"] if item["type"] == "mcp_call"]
    assert ran == [name for name in ("add", "total") if name not in waiting]
    assert response["tools"][0]["require_approval"] == (approval or "always")


def test_a_stream_tells_the_question_and_the_approved_call(http: httpx.Client, hosted: Hosted) -> None:
    asked = follow(http, ADD, tools=[hosted()])[-1]["response"]
    events = follow(http, [answer_to(asks_of(asked)[0])], previous_response_id=asked["id"], tools=[hosted()])

    assert "mcp_call.completed" in kinds(events)
    assert get(http, asked["id"]) == asked
    assert get(http, events[-1]["response"]["id"]) == events[-1]["response"]


def test_an_approved_call_may_fail(http: httpx.Client, hosted: Hosted) -> None:
    asked = respond(http, 'call: boom {"why": "no luck"}', tools=[hosted()])

    answered = respond(http, [answer_to(asks_of(asked)[0])], previous_response_id=asked["id"], tools=[hosted()])

    assert item_of(answered, "mcp_call")["status"] == "failed"
    assert "no luck" in text_of(answered)


def test_an_approved_call_runs_with_the_credentials_of_the_request_that_approves_it(
    http: httpx.Client, hosted: Hosted, mcp_server: str
) -> None:
    tool = hosted(server_url=f"{mcp_server}/private/mcp", authorization="right-token")
    asked = respond(http, ADD, tools=[tool])

    answered = respond(http, [answer_to(asks_of(asked)[0])], previous_response_id=asked["id"], tools=[tool])

    assert item_of(answered, "mcp_call")["output"] == "3"


def test_more_approved_calls_than_are_run_side_by_side_are_refused(
    http: httpx.Client, hosted: Hosted, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = {"type": "mcp_approval_request", "server_label": "sums", "name": "add", "arguments": '{"a": 1, "b": 2}'}
    consent = {"type": "mcp_approval_response", "approve": True}
    calls = [call | {"id": f"mcpr_{number:032x}02"} for number in range(3)]
    consents = [consent | {"approval_request_id": each["id"]} for each in calls]
    monkeypatch.setattr(input_items, "MAX_APPROVED_CALLS", 2)

    refused = post(http, [*calls, *consents], tools=[hosted()])
    run = respond(http, [*calls, *consents[:2]], tools=[hosted()])

    error = assert_refused(refused, 400, "too_many_approvals")
    assert (error["param"], "At most 2 approved calls" in error["message"]) == ("input", True)
    assert types_of(run).count("mcp_call") == 2


@pytest.mark.parametrize("field", ["allowed_tools", "always"])
def test_a_tool_names_at_most_512_tools_of_its_server(http: httpx.Client, hosted: Hosted, field: str) -> None:
    names = [f"t{number}" for number in range(513)]
    tool = hosted(allowed_tools=names) if field == "allowed_tools" else hosted({"always": {"tool_names": names}})

    answer = post(http, ADD, tools=[tool])

    assert answer.status_code == 400
    assert "512" in answer.json()["error"]["message"]
    assert "tools[0]" in answer.json()["error"]["param"]
