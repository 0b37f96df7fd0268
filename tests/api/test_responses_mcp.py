"""Tools of MCP servers that the server itself calls, of a real MCP server."""

import logging
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from tests.api.app_fixture import AppFixture, run_in_thread
from tests.api.responses_client import (
    RESPONSES,
    WEATHER,
    Body,
    follow,
    get,
    item_of,
    kinds,
    output_for,
    post,
    respond,
    text_of,
    types_of,
    user,
)

from stint.domain.inference import AssistantAnswer

TOKEN = "right-token"
ADD = 'call: add {"a": 1, "b": 2}'
WEATHER_ONLY = "call: get_weather {}"
CALL = [
    "output_item.added",
    "mcp_call.in_progress",
    "mcp_call_arguments.delta",
    "mcp_call_arguments.done",
    "mcp_call.completed",
    "output_item.done",
]
LIST = ["output_item.added", "mcp_list_tools.in_progress", "mcp_list_tools.completed", "output_item.done"]
Hosted = Callable[..., Body]


@pytest.fixture
def hosted(mcp: str, mcp_server: str) -> Hosted:
    """Make a tool of the MCP server."""

    def make(path: str = "/mcp", **fields: Any) -> Body:
        own = {"type": "mcp", "server_label": "sums", "server_url": mcp_server + path, "require_approval": "never"}
        return own | fields

    return make


@pytest.mark.parametrize("path", ["/mcp", "/json/mcp", "/sse"])
def test_a_server_lists_its_tools_and_runs_them(http: httpx.Client, hosted: Hosted, path: str) -> None:
    response = respond(http, ADD, tools=[hosted(path)])

    assert types_of(response) == ["mcp_list_tools", "mcp_call", "message"]
    listed, call = response["output"][:2]
    add = next(tool for tool in listed["tools"] if tool["name"] == "add")
    assert (listed["server_label"], add["description"]) == ("sums", "Add two integers.")
    assert sorted(add["input_schema"]["properties"]) == ["a", "b"]
    assert (call["name"], call["arguments"], call["output"]) == ("add", '{"a": 1, "b": 2}', "3")
    assert (call["error"], call["status"], call["server_label"]) == (None, "completed", "sums")
    assert text_of(response) == "add answered: 3"
    assert get(http, response["id"]) == response


def test_a_listed_tool_has_what_its_server_sent_and_no_nulls(http: httpx.Client, hosted: Hosted) -> None:
    """The AI SDK refuses null for a description and for annotations."""
    response = respond(http, ADD, tools=[hosted()])

    for item in (response["output"][0], get(http, response["id"])["output"][0]):
        tools = {tool["name"]: tool for tool in item["tools"]}
        assert "annotations" not in tools["add"]
        assert tools["order"]["annotations"] == {"title": "Order", "destructiveHint": False}
        assert not [name for tool in tools.values() for name, value in tool.items() if value in (None, "")]
        assert "error" not in item


def test_a_stream_tells_the_list_and_the_calls(http: httpx.Client, hosted: Hosted) -> None:
    events = follow(http, f"{ADD}\nrepeat: 2", tools=[hosted(allowed_tools=["add"])])

    assert kinds(events)[2:-7] == [*LIST, *CALL, *CALL]
    assert get(http, events[-1]["response"]["id"]) == events[-1]["response"]


def test_of_a_servers_tools_those_that_are_allowed_are_shown(
    http: httpx.Client, hosted: Hosted, app_fixture: AppFixture
) -> None:
    allowed = {"tool_names": ["add", "total"]}
    response = respond(http, tools=[hosted(allowed_tools=allowed)], model="recorded/m")

    assert [tool["name"] for tool in response["output"][0]["tools"]] == ["add", "total"]
    assert [tool.name for tool in app_fixture.last_request.tools] == ["add", "total"]
    assert response["tools"][0]["allowed_tools"] == allowed


def test_a_tool_that_is_not_allowed_does_not_run(http: httpx.Client, hosted: Hosted) -> None:
    response = respond(http, "call: boom {}", tools=[hosted(allowed_tools=["add"])])

    assert types_of(response) == ["mcp_list_tools", "message"]
    assert "There is no tool named 'boom'" in text_of(response)


@pytest.mark.parametrize(
    ("call", "error"), [('call: boom {"why": "no luck"}', "no luck"), ("call: add [1", "not a JSON object")]
)
def test_a_call_that_fails_has_an_error_and_the_model_goes_on(
    http: httpx.Client, hosted: Hosted, call: str, error: str
) -> None:
    events = follow(http, call, tools=[hosted()])

    response = events[-1]["response"]
    failed = item_of(response, "mcp_call")
    assert (failed["status"], failed["output"], failed["error"]["type"]) == ("failed", None, "mcp_tool_execution_error")
    assert error in failed["error"]["content"]
    assert error in text_of(response)
    assert "mcp_call.failed" in kinds(events)
    assert get(http, response["id"]) == response


def test_two_servers_have_a_list_each(http: httpx.Client, hosted: Hosted) -> None:
    tools = [hosted(allowed_tools=["add"]), hosted("/json/mcp", server_label="more", allowed_tools=["total"])]

    response = respond(http, 'call: total {"numbers": [1, 2]}', tools=tools)

    assert [item["server_label"] for item in response["output"][:3]] == ["sums", "more", "more"]
    assert item_of(response, "mcp_call")["name"] == "total"


def test_a_function_and_a_servers_tool_may_be_called_in_one_answer(http: httpx.Client, hosted: Hosted) -> None:
    tools = [WEATHER, hosted()]
    events = follow(http, f"say: Both\ncall: get_weather {{}}\n{ADD}", tools=tools)

    asked = events[-1]["response"]
    output = output_for(item_of(asked, "function_call"))
    chained = respond(http, [output], previous_response_id=asked["id"], tools=tools)
    whole = respond(http, [user("go"), *asked["output"], output], tools=tools, store=False)

    assert types_of(asked) == ["mcp_list_tools", "message", "function_call", "mcp_call"]
    assert asked["status"] == "completed"
    assert text_of(chained) == text_of(whole) == "add answered: 3\nget_weather answered: sunny"


KIND_OF = {"get_weather": "function_call", "add": "mcp_call", "total": "mcp_approval_request"}


@pytest.mark.parametrize("order", [tuple(KIND_OF), ("add", "total", "add", "get_weather", "add")])
def test_items_stand_in_the_order_of_the_models_calls(
    http: httpx.Client, hosted: Hosted, app_fixture: AppFixture, order: tuple[str, ...]
) -> None:
    tools = [WEATHER, hosted(require_approval={"always": {"tool_names": ["total"]}})]
    arguments = {"get_weather": "{}", "add": '{"a": 1, "b": 2}', "total": '{"numbers": [1, 2]}'}
    events = follow(http, "\n".join(f"call: {name} {arguments[name]}" for name in order), tools=tools)

    asked = events[-1]["response"]
    answers = [output_for(item_of(asked, "function_call")), approval_of(item_of(asked, "mcp_approval_request"))]
    fields = {"tools": tools, "model": "recorded/m"}
    respond(http, answers, previous_response_id=asked["id"], **fields)
    respond(http, [user("go"), *asked["output"], *answers], store=False, **fields)

    added = [event["item"]["id"] for event in events if event["type"] == "response.output_item.added"]
    assert types_of(asked) == ["mcp_list_tools", *(KIND_OF[name] for name in order)]
    assert added == [item["id"] for item in asked["output"]]
    assert get(http, asked["id"]) == asked
    said = [each for request in app_fixture.recorder.requests for each in request.messages]
    answered = [each for each in said if isinstance(each, AssistantAnswer)]
    assert [tuple(call.tool_name for call in each.tool_calls) for each in answered] == [order, order]


def approval_of(request: Body) -> Body:
    """Approve a call."""
    return {"type": "mcp_approval_response", "approval_request_id": request["id"], "approve": True}


def test_a_finished_call_is_a_round_of_its_own_for_the_model(
    http: httpx.Client, hosted: Hosted, app_fixture: AppFixture
) -> None:
    done = respond(http, ADD, tools=[hosted()])

    respond(http, [user("and?")], previous_response_id=done["id"], model="recorded/m")
    respond(http, [user(ADD), *done["output"], user("and?")], model="recorded/m")

    shapes = [[type(message).__name__ for message in request.messages] for request in app_fixture.recorder.requests]
    assert shapes == [["UserInput", "AssistantAnswer", "ToolResult", "AssistantAnswer", "UserInput"]] * 2


@pytest.mark.parametrize(("limit", "status"), [(2, "incomplete"), (3, "completed")])
def test_calls_beyond_the_limit_are_not_run(http: httpx.Client, hosted: Hosted, limit: int, status: str) -> None:
    response = respond(http, f"{ADD}\n{ADD}\n{ADD}", tools=[hosted()], max_tool_calls=limit)

    assert types_of(response).count("mcp_call") == limit
    assert response["status"] == status
    assert response["incomplete_details"] == ({"reason": "max_tool_calls"} if status == "incomplete" else None)


def test_model_calls_are_limited_by_llama_stacks_extension(http: httpx.Client, hosted: Hosted) -> None:
    response = respond(http, f"{ADD}\nrepeat: 9", tools=[hosted()], max_infer_iters=2)

    assert (response["status"], types_of(response)) == ("incomplete", ["mcp_list_tools", "mcp_call"])
    assert response["incomplete_details"] == {"reason": "max_infer_iters"}
    assert response["usage"]["output_tokens"] > 0
    assert get(http, response["id"]) == response


@pytest.mark.parametrize("said", [f"{ADD}\n{WEATHER_ONLY}", WEATHER_ONLY])
def test_the_last_model_call_may_leave_calls_to_the_client(http: httpx.Client, hosted: Hosted, said: str) -> None:
    tools = [hosted(), WEATHER]

    asked = respond(http, said, tools=tools, max_infer_iters=1)
    answered = respond(http, [output_for(item_of(asked, "function_call"))], previous_response_id=asked["id"])

    assert (asked["status"], answered["status"]) == ("completed", "completed")
    assert [item["output"] for item in asked["output"] if item["type"] == "mcp_call"] == ["3"] * (said != WEATHER_ONLY)


@pytest.mark.parametrize(
    ("bound", "way"), [({"max_infer_iters": 1}, "previous_response_id"), ({"max_tool_calls": 1}, "conversation")]
)
def test_what_continues_from_a_limit_knows_nothing_of_the_calls_that_were_not_run(
    http: httpx.Client, hosted: Hosted, app_fixture: AppFixture, bound: Body, way: str
) -> None:
    begun = {"conversation": http.post("/v1/conversations").json()["id"]} if way == "conversation" else {}
    ended = respond(http, f"say: Look\n{ADD}\n{ADD}", tools=[hosted()], **bound, **begun)

    respond(http, "go on", model="recorded/m", **(begun or {way: ended["id"]}))

    assert ended["status"] == "incomplete"
    [answer] = [each for each in app_fixture.last_request.messages if isinstance(each, AssistantAnswer)]
    ran = [item for item in ended["output"] if item["type"] == "mcp_call"]
    assert (answer.text, len(answer.tool_calls)) == ("Look", len(ran))


@pytest.mark.parametrize(("path", "place"), [("/private/mcp", "authorization"), ("/private/sse", "headers")])
def test_credentials_reach_the_server_and_nobody_else(
    http: httpx.Client, hosted: Hosted, app_fixture: AppFixture, caplog: pytest.LogCaptureFixture, path: str, place: str
) -> None:
    secret = {"authorization": TOKEN} if place == "authorization" else {"headers": {"Authorization": f"Bearer {TOKEN}"}}
    caplog.set_level(logging.DEBUG)

    answer = post(http, ADD, tools=[hosted(path, **secret)], stream=True)
    listed = http.get(RESPONSES)
    stored = run_in_thread(app_fixture.store.responses.get(app_fixture.tenant, listed.json()["first_id"]))
    records = "".join(each.model_dump_json() for each in (stored.header, *stored.records))

    assert "add answered: 3" in answer.text
    assert "server_label" in records
    assert TOKEN not in answer.text + listed.text + caplog.text + records


@pytest.mark.parametrize(
    ("path", "fields", "status", "code"),
    [
        ("/private/mcp", {}, 401, "tool_unauthorized"),
        ("/private/mcp", {"authorization": "wrong-token"}, 401, "tool_unauthorized"),
        ("/nowhere", {}, 502, "tool_unavailable"),
        ("", {"server_url": "http://127.0.0.1:9/mcp"}, 502, "tool_unavailable"),
        ("", {"server_url": "http://10.1.2.3/mcp"}, 400, "url_not_allowed"),
        ("/mcp", {"headers": {"Host": "x"}}, 400, "invalid_request"),
    ],
)
def test_a_server_that_cannot_be_asked_refuses_the_response_before_its_stream(
    http: httpx.Client, hosted: Hosted, path: str, fields: Body, status: int, code: str
) -> None:
    answer = post(http, ADD, tools=[hosted(path, **fields)], stream=True)

    assert answer.status_code == status, answer.text
    assert answer.json()["error"]["code"] == code
    assert "wrong-token" not in answer.text
    assert http.get(RESPONSES).json()["data"] == []
