"""Tool choices in both APIs, with a model server that ignores them."""

from collections.abc import Callable
from typing import Any

import httpx
import pytest
from tests.api.api_client import open_session, resume, turn
from tests.api.responses_client import TIME, WEATHER, Body, follow, get, item_of, respond, text_of, types_of
from tests.api.sequences import calls, says
from tests.servers.chat_completions import ChatCompletionsServer

ADD = ("c1", "add", '{"a": 1, "b": 2}')
TOTAL = ("c2", "total", '{"numbers": [1]}')
GET_WEATHER = ("c3", "get_weather", "{}")
CLIENT_TOOL: Body = {"name": "ask", "description": "Ask the user.", "parameters": []}
GET_TIME = ("c4", "get_time", "{}")
Ask = Callable[..., Body]


@pytest.fixture
def server_tool(mcp: str, mcp_server: str) -> Body:
    url = f"{mcp_server}/mcp"
    return {"type": "mcp", "server_label": "sums", "server_url": url, "require_approval": "never"}


@pytest.fixture
def ask(http: httpx.Client, chat: ChatCompletionsServer, server_tool: Body) -> Ask:
    """Create a response of a model that makes some calls, and then says that it is done."""

    def ask(choice: Any, *made: tuple[str, str, str], **fields: Any) -> Body:
        chat.script(calls(*made), says("Done."))
        tools = [WEATHER, TIME, server_tool]
        return respond(http, "go", model="openai/m", tools=tools, tool_choice=choice, **fields)

    return ask


def results_of(chat: ChatCompletionsServer) -> list[str]:
    return [message["content"] for message in chat.bodies[-1]["messages"] if message["role"] == "tool"]


@pytest.mark.parametrize("made", [(ADD,), (GET_WEATHER,), (ADD, GET_WEATHER)])
def test_no_call_of_a_response_runs_in_spite_of_none(
    ask: Ask, http: httpx.Client, chat: ChatCompletionsServer, made: tuple[tuple[str, str, str], ...]
) -> None:
    response = ask("none", *made)

    assert types_of(response) == ["mcp_list_tools", "message"]
    assert text_of(response) == "Done."
    assert len(results_of(chat)) == len(made)
    assert all("There is no tool named" in result for result in results_of(chat))
    assert get(http, response["id"]) == response


@pytest.mark.parametrize(
    "choice",
    [
        {"type": "mcp", "server_label": "sums", "name": "add"},
        {"type": "function", "name": "get_time"},
        {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "get_time"}]},
    ],
)
@pytest.mark.parametrize("call", [TOTAL, GET_WEATHER])
def test_no_other_tool_of_a_response_runs_than_the_chosen_one(
    ask: Ask, http: httpx.Client, chat: ChatCompletionsServer, choice: Any, call: tuple[str, str, str]
) -> None:
    response = ask(choice, call)

    assert types_of(response) == ["mcp_list_tools", "message"]
    [result] = results_of(chat)
    assert "did not run" in result or "There is no tool named" in result
    assert get(http, response["id"]) == response


def test_of_several_calls_the_chosen_one_runs(ask: Ask, http: httpx.Client, chat: ChatCompletionsServer) -> None:
    response = ask({"type": "mcp", "server_label": "sums", "name": "add"}, GET_WEATHER, TOTAL, ADD)

    assert types_of(response) == ["mcp_list_tools", "mcp_call", "message"]
    assert item_of(response, "mcp_call")["name"] == "add"
    assert get(http, response["id"]) == response


def test_the_chosen_function_is_handed_over_alone(http: httpx.Client, chat: ChatCompletionsServer) -> None:
    chat.script(calls(GET_WEATHER, GET_TIME))
    choice = {"type": "function", "name": "get_time"}

    events = follow(http, "go", model="openai/m", tools=[WEATHER, TIME], tool_choice=choice)

    response = events[-1]["response"]
    assert [item["name"] for item in response["output"]] == ["get_time"]
    assert "get_weather" not in [event["item"].get("name") for event in events if "item" in event]
    chat.script(says("Noon."))
    output = {"type": "function_call_output", "call_id": "c4", "output": "12:00"}
    after = respond(http, [output], model="openai/m", tools=[WEATHER, TIME], previous_response_id=response["id"])
    assert text_of(after) == "Noon."
    assert len(results_of(chat)) == 2


def test_a_forbidden_call_at_the_limit_is_not_handed_over(http: httpx.Client, chat: ChatCompletionsServer) -> None:
    chat.script(calls(GET_WEATHER))
    choice = {"type": "function", "name": "get_time"}

    response = respond(http, "go", model="openai/m", tools=[WEATHER, TIME], tool_choice=choice, max_infer_iters=1)

    assert response["incomplete_details"] == {"reason": "max_infer_iters"}
    assert "function_call" not in types_of(response)
    assert get(http, response["id"]) == response


def test_a_turn_follows_the_same_rule(http: httpx.Client, chat: ChatCompletionsServer, mcp: str) -> None:
    session = open_session(http, model="openai/m", toolgroups=[mcp], client_tools=[CLIENT_TOOL])
    chat.script(calls(TOTAL, ("c3", "ask", "{}")), says("Sorry."), calls(ADD), says("No."))

    forced = turn(http, session, "go", tool_config={"tool_choice": "add"})
    without = turn(http, session, "go", tool_config={"tool_choice": "none"})

    texts = [str(step["tool_responses"]) for step in forced["steps"] if step["step_type"] == "tool_execution"]
    assert len(texts) == 2
    assert all("did not run, because tool_choice requires a call of 'add'" in text for text in texts)
    assert forced["status"] == "completed"
    assert "There is no tool named 'add'" in str(without["steps"][1]["tool_responses"])


def test_a_turn_waits_for_the_chosen_call_alone(http: httpx.Client, chat: ChatCompletionsServer) -> None:
    other = {**CLIENT_TOOL, "name": "other"}
    session = open_session(http, model="openai/m", client_tools=[CLIENT_TOOL, other])
    chosen = "ask"
    chat.script(calls(("c1", "other", "{}"), ("c2", chosen, "{}")), calls(("c3", "other", "{}")))

    paused = turn(http, session, "go", tool_config={"tool_choice": chosen})
    again = resume(http, session, paused, "sunny").json()

    assert paused["status"] == again["status"] == "awaiting_input"
    assert [call["call_id"] for call in paused["output_message"]["tool_calls"]] == ["c2"]
    assert chat.bodies[1].get("tool_choice") is None
