"""Images of callers over HTTP."""

from typing import Any

import httpx
import pytest
from tests.api.api_client import WEATHER, assert_error, open_session, resume, say, turn, turns_of
from tests.api.sequences import calls, last_turn, says
from tests.servers.chat_completions import ChatCompletionsServer

UNREADABLE: list[dict[str, Any]] = [
    {"url": {"uri": "file:///etc/passwd"}},
    {"url": {"uri": "gopher://example.com/x"}},
    {"url": {"uri": ""}},
    {"url": {"uri": "data:image/png,plain"}},
    {"url": {"uri": "data:image/png;base64,!!!"}},
    {"data": "!!!"},
    {"data": "aGVsbG8="},
]


def image(source: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"type": "image", "image": source}, {"type": "text", "text": "what?"}]


@pytest.mark.parametrize("source", UNREADABLE)
def test_an_image_that_no_model_could_read_is_refused_before_the_stream_as_it_would_spoil_every_later_turn(
    http: httpx.Client, chat: ChatCompletionsServer, source: dict[str, Any]
) -> None:
    session = open_session(http, model="openai/m")

    refused = say(http, session, image(source), stream=True)

    field = "data" if "data" in source else "url.uri"
    assert assert_error(refused, 400, "invalid_request")["param"] == f"messages[0].content[0].image.{field}"
    assert turns_of(http, session) == []
    assert turn(http, session, "hello")["status"] == "completed"


@pytest.mark.parametrize("source", UNREADABLE)
def test_an_image_in_a_result_that_no_model_could_read_leaves_the_turn_waiting(
    http: httpx.Client, chat: ChatCompletionsServer, source: dict[str, Any]
) -> None:
    session = open_session(http, model="openai/m", client_tools=[WEATHER])
    chat.script(calls(("call_c", "get_weather", "{}")), says("fine"))
    paused = last_turn(say(http, session, "weather?", stream=True))
    response = {"call_id": "call_c", "tool_name": "get_weather", "content": image(source)}

    refused = http.post(f"{session}/turn/{paused['turn_id']}/resume", json={"tool_responses": [response]})

    assert_error(refused, 400, "invalid_request")
    assert turns_of(http, session) == [paused]
    assert resume(http, session, paused, "sunny").json()["status"] == "completed"


@pytest.mark.parametrize("address", ["169.254.169.254", "10.0.0.1", "127.0.0.1", "[::1]"])
def test_an_image_where_callers_may_not_reach_is_refused_as_the_provider_might(
    http: httpx.Client, chat: ChatCompletionsServer, address: str
) -> None:
    session = open_session(http, model="openai/m")

    refused = say(http, session, image({"url": {"uri": f"http://{address}/cat.png"}}), stream=True)

    assert assert_error(refused, 400, "url_not_allowed")["param"] == "messages[0].content[0].image.url.uri"
    assert turns_of(http, session) == []
