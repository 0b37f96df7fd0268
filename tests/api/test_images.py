"""Images of callers over HTTP."""

from typing import Any

import httpx
import pytest
from tests.api.api_client import WEATHER, assert_error, open_session, resume, say, turn, turns_of
from tests.api.sequences import calls, last_turn, says
from tests.servers.chat_completions import ChatCompletionsServer

from stint.domain.limits import MAX_IMAGE_URLS, MAX_IMAGES

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
def test_an_unreadable_image_is_refused_before_the_stream(
    http: httpx.Client, chat: ChatCompletionsServer, source: dict[str, Any]
) -> None:
    """It would spoil every later turn."""
    session = open_session(http, model="openai/m")

    refused = say(http, session, image(source), stream=True)

    field = "data" if "data" in source else "url.uri"
    assert assert_error(refused, 400, "invalid_request")["param"] == f"messages[0].content[0].image.{field}"
    assert turns_of(http, session) == []
    assert turn(http, session, "hello")["status"] == "completed"


@pytest.mark.parametrize("source", [UNREADABLE[0], UNREADABLE[-1]])
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


@pytest.mark.parametrize("address", ["169.254.169.254", "[::1]"])
def test_an_image_where_callers_may_not_reach_is_refused_as_the_provider_might(
    http: httpx.Client, chat: ChatCompletionsServer, address: str
) -> None:
    session = open_session(http, model="openai/m")

    refused = say(http, session, image({"url": {"uri": f"http://{address}/cat.png"}}), stream=True)

    assert assert_error(refused, 400, "url_not_allowed")["param"] == "messages[0].content[0].image.url.uri"
    assert turns_of(http, session) == []


PNG = "data:image/png;base64,iVBORw0KGgo="


def send_images(http: httpx.Client, urls: list[str]) -> dict[str, httpx.Response]:
    """Send images to every API, and return the answers by the field of the last image."""
    last = f"content[{len(urls) - 1}]"
    session = open_session(http)
    parts = [{"type": "input_image", "image_url": url} for url in urls]
    said = [{"role": "user", "content": parts}]
    chat = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
    completion = {"model": "scripted/demo", "messages": [{"role": "user", "content": chat}]}
    return {
        f"messages[0].{last}.image.url.uri": say(
            http, session, [{"type": "image", "image": {"url": {"uri": url}}} for url in urls]
        ),
        f"input[0].{last}.image_url": http.post("/v1/responses", json={"model": "scripted/demo", "input": said}),
        f"items[0].{last}.image_url": http.post("/v1/conversations", json={"items": said}),
        f"messages[0].{last}.image_url.url": http.post("/v1/chat/completions", json=completion),
    }


@pytest.mark.parametrize(
    ("urls", "limit"),
    [
        ([f"https://93.184.215.14/{place}.png" for place in range(MAX_IMAGE_URLS + 1)], "100 URLs of images"),
        ([PNG] * (MAX_IMAGES + 1), "2,000 images"),
    ],
)
def test_too_many_images_are_refused_everywhere(
    http: httpx.Client, monkeypatch: pytest.MonkeyPatch, urls: list[str], limit: str
) -> None:
    for field, answer in send_images(http, urls).items():
        error = answer.json()["error"]
        assert (answer.status_code, error["code"], error["param"]) == (400, "too_many_images", field)
        assert limit in error["message"]
    assert {answer.status_code for answer in send_images(http, urls[1:]).values()} == {200}


def test_the_same_url_counts_once(http: httpx.Client) -> None:
    answers = send_images(http, ["https://93.184.215.14/a.png"] * (MAX_IMAGE_URLS + 1))

    assert {answer.status_code for answer in answers.values()} == {200}
