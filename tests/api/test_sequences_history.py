"""Messages to models, compared with recordings of Llama Stack 0.2.12 and a chat completions server."""

import base64
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from tests.api.api_client import TIME, WEATHER, open_session, resume, say, turn
from tests.api.app_fixture import AppFixture
from tests.api.sequences import ADD, calls, last_turn, says, sequence
from tests.servers import tavily
from tests.servers.chat_completions import ChatCompletionsServer
from tests.servers.scripted_http import ScriptedHTTPServer

from stint.net.guard import Guard
from stint.tools.search.engines import Tavily
from stint.tools.search.web_search import WebSearch

ASK = ("call_c", "get_weather", '{"city":  "Ulm"}')
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
Message = dict[str, Any]


def said(role: str, text: str) -> Message:
    return {"role": role, "content": text}


def sent(chat: ChatCompletionsServer) -> list[Message]:
    """Return the messages of the last model call."""
    messages: list[Message] = chat.bodies[-1]["messages"]
    return messages


def test_turns_are_sent_in_the_order_of_their_creation(http: httpx.Client, chat: ChatCompletionsServer) -> None:
    """The random ids of the original shuffle a conversation."""
    session = open_session(http, model="openai/m")
    for number in range(6):
        chat.script(says(f"answer {number}"))
        turn(http, session, f"turn {number}")

    turns = [
        message
        for number in range(5)
        for message in (said("user", f"turn {number}"), said("assistant", f"answer {number}"))
    ]
    assert sent(chat) == [said("system", "Be brief."), *turns, said("user", "turn 5")]


def test_empty_instructions_are_no_message_as_recorded(http: httpx.Client, chat: ChatCompletionsServer) -> None:
    turn(http, open_session(http, model="openai/m", instructions=""), "hi")

    assert sent(chat) == [said("user", "hi")]


def test_steps_are_sent_with_results_bound_to_their_calls(
    http: httpx.Client, chat: ChatCompletionsServer, mcp: str
) -> None:
    """They are sent as recorded; OpenAI refuses results without their calls."""
    session = open_session(http, model="openai/m", toolgroups=[mcp], client_tools=[WEATHER])
    chat.script(calls(ASK, ADD), says("sunny, 5"))
    paused = last_turn(say(http, session, "weather and 2+3?", stream=True))
    resume(http, session, paused, "sunny")

    turn(http, session, "thanks")

    made = [
        {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
        for call_id, name, arguments in (ASK, ADD)
    ]
    assert sent(chat)[1:] == [
        said("user", "weather and 2+3?"),
        {"role": "assistant", "content": None, "tool_calls": made},
        {"role": "tool", "tool_call_id": "call_a", "content": "5"},
        {"role": "tool", "tool_call_id": "call_c", "content": "sunny"},
        said("assistant", "sunny, 5"),
        said("user", "thanks"),
    ]


def test_a_call_that_was_never_run_is_closed_as_providers_refuse_a_call_without_a_result(
    http: httpx.Client, chat: ChatCompletionsServer
) -> None:
    session = open_session(http, model="openai/m", client_tools=[WEATHER], max_infer_iters=1)
    chat.script(calls(ASK), says("fine"))
    turn(http, session, "loop")

    turn(http, session, "after")

    call, result, after = sent(chat)[-3:]
    assert call["tool_calls"][0]["id"] == result["tool_call_id"] == "call_c"
    assert (result["role"], after) == ("tool", said("user", "after"))


def test_every_shape_of_a_message_is_sent_as_recorded_and_its_context_is_not(
    http: httpx.Client, chat: ChatCompletionsServer
) -> None:
    session = open_session(http, model="openai/m")
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    messages = [
        {"role": "user", "content": parts},
        {"role": "user", "content": parts[0]},
        {"role": "user", "content": "with context", "context": "CONTEXT"},
    ]

    http.post(f"{session}/turn", json={"messages": messages}).raise_for_status()

    assert sent(chat)[1:] == [{"role": "user", "content": parts}, said("user", "a"), said("user", "with context")]


@pytest.mark.parametrize("image", [{"data": PNG}, {"url": {"uri": f"data:image/png;base64,{PNG}"}}])
def test_images_are_data_urls_as_recorded_with_a_media_type_that_exists(
    http: httpx.Client, chat: ChatCompletionsServer, image: Message
) -> None:
    content = [{"type": "image", "image": image}, {"type": "text", "text": "what?"}]

    turn(http, open_session(http, model="openai/m"), content)

    shown, text = sent(chat)[-1]["content"]
    kind, _, data = shown["image_url"]["url"].partition(",")
    assert (kind, base64.b64decode(data)) == ("data:image/png;base64", base64.b64decode(PNG))
    assert text == {"type": "text", "text": "what?"}


def test_tools_of_clients_come_first_and_servers_schemas_stay_untouched(
    http: httpx.Client, chat: ChatCompletionsServer, mcp: str
) -> None:
    """The types of clients' parameters are those of JSON schema."""
    flag = {"name": "celsius", "parameter_type": "bool", "description": "", "required": False, "default": False}
    weather = WEATHER | {"parameters": [*WEATHER["parameters"], flag]}
    session = open_session(http, model="openai/m", toolgroups=[mcp, mcp], client_tools=[weather, TIME])

    turn(http, session, "hi")

    functions = [tool["function"] for tool in chat.bodies[-1]["tools"]]
    assert [each["name"] for each in functions][:4] == ["get_weather", "get_time", "add", "order"]
    assert functions[0]["parameters"]["properties"]["city"] == {"type": "string", "description": "Where."}
    assert functions[0]["parameters"]["properties"]["celsius"]["default"] is False
    assert functions[0]["parameters"]["required"] == ["city"]
    assert functions[3]["parameters"]["required"] == ["items"]
    item = functions[3]["parameters"]["$defs"]["Item"]
    assert item["properties"]["size"]["enum"] == ["small", "large"]


@pytest.mark.parametrize(
    ("call", "content", "error"),
    [
        (("c1", "nothing", "{}"), [], None),
        (("c1", "boom", '{"why": "no"}'), "boom: no", True),
        (("c1", "nosuch", "{}"), "There is no tool named 'nosuch'", True),
        (("c1", "add", '{"a": "x"}'), 'does not satisfy type "integer"', True),
    ],
)
def test_a_failed_call_is_told_to_the_model(
    http: httpx.Client,
    chat: ChatCompletionsServer,
    mcp: str,
    call: tuple[str, str, str],
    content: str | list[Any],
    error: bool | None,
) -> None:
    """The model is told what comes of each call. A failure ends no turn, because the model can try again."""
    session = open_session(http, model="openai/m", toolgroups=[mcp])
    chat.script(calls(call), says("I see."))

    told = say(http, session, "go", stream=True)

    assert sequence(told)[4:7] == ["start tool_execution", f"call in_progress {call[1]}", "complete tool_execution"]
    assert sequence(told)[-1] == "turn_complete end_of_turn"
    [response] = last_turn(told)["steps"][1]["tool_responses"]
    assert (response["metadata"] or {}).get("error") is error
    assert response["content"] == content if isinstance(content, list) else content in str(response["content"])
    assert sent(chat)[-1]["tool_call_id"] == "c1"


@pytest.fixture
def web_search(app_fixture: AppFixture) -> Iterator[str]:
    """Web search by Tavily, which stands on loopback."""
    with ScriptedHTTPServer(tavily.answer) as service:
        engine = Tavily(Guard(["127.0.0.1"]), base_url=service.url)
        app_fixture.tool_providers = {"tavily-search": WebSearch(engine, tavily.KEY)}
        app_fixture.made.clear()
        yield "builtin::websearch"
    app_fixture.tool_providers = None


def test_web_search_is_brave_search_to_the_model_and_in_steps_as_recorded(
    http: httpx.Client, chat: ChatCompletionsServer, web_search: str
) -> None:
    session = open_session(http, model="openai/m", toolgroups=[web_search])
    chat.script(calls(("c1", "brave_search", '{"query": "tea"}')), says("Tea."))

    told = say(http, session, "tea?", stream=True)

    assert sequence(told)[2:7] == [
        *["call succeeded brave_search", "complete inference"],
        *["start tool_execution", "call in_progress brave_search", "complete tool_execution"],
    ]
    [response] = last_turn(told)["steps"][1]["tool_responses"]
    assert response["tool_name"] == "brave_search"
    assert "About tea" in str(response["content"])
    assert [tool["function"]["name"] for tool in chat.bodies[0]["tools"]] == ["brave_search"]


@pytest.mark.parametrize(
    ("sampling", "expected"),
    [
        ({}, {"temperature": 0.0}),
        ({"strategy": {"type": "greedy"}, "max_tokens": 0}, {"temperature": 0.0}),
        ({"strategy": {"type": "greedy"}, "max_tokens": 99}, {"temperature": 0.0, "max_tokens": 99}),
        ({"strategy": {"type": "top_p", "temperature": 0.5}}, {"temperature": 0.5, "top_p": 0.95}),
        ({"strategy": {"type": "top_k", "top_k": 5}}, {"top_k": 5}),
        (
            {"repetition_penalty": 1.3, "stop": ["A", "B"]},
            {"temperature": 0.0, "repetition_penalty": 1.3, "stop": ["A", "B"]},
        ),
    ],
)
def test_sampling_is_sent_as_recorded_and_what_broke_the_turn_is_sent_too(
    http: httpx.Client, chat: ChatCompletionsServer, sampling: dict[str, Any], expected: dict[str, Any]
) -> None:
    turn(http, open_session(http, model="openai/m", sampling_params=sampling), "hi")

    names = ("temperature", "top_p", "top_k", "max_tokens", "repetition_penalty", "stop")
    assert {name: chat.bodies[-1][name] for name in names if name in chat.bodies[-1]} == expected
