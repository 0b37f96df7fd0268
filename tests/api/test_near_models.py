"""A request that names an unknown model is told the id that it probably means, in every API."""

from collections.abc import Callable, Iterator
from urllib.parse import quote

import httpx
import pytest
from tests.api.api_client import open_session, say
from tests.api.app_fixture import AppFixture
from tests.servers import chat_completions as provider
from tests.servers.chat_completions import ChatCompletionsServer

HI = {"role": "user", "content": "say: Hi"}


@pytest.fixture
def configured(app_fixture: AppFixture) -> Iterator[None]:
    before = app_fixture.settings
    app_fixture.settings = before.model_copy(update={"models": "openai/gpt-4.1-mini,recorded/one,faulty/one"})
    app_fixture.made.clear()
    yield
    app_fixture.settings = before
    app_fixture.made.clear()


def complete(http: httpx.Client, model: str, *, stream: bool = False) -> httpx.Response:
    return http.post("/v1/chat/completions", json={"model": model, "messages": [HI], "stream": stream})


def respond(http: httpx.Client, model: str, *, stream: bool = False) -> httpx.Response:
    return http.post("/v1/responses", json={"model": model, "input": "say: Hi", "stream": stream})


def infer(http: httpx.Client, model: str, *, stream: bool = False) -> httpx.Response:
    body = {"model_id": model, "messages": [HI], "stream": stream}
    return http.post("/v1/inference/chat-completion", json=body)


def create_turn(http: httpx.Client, model: str, *, stream: bool = False) -> httpx.Response:
    return say(http, open_session(http, model=model), "say: Hi", stream=stream)


ASKS = [complete, respond, infer, create_turn]
Ask = Callable[..., httpx.Response]


def error_of(answer: httpx.Response, status: int = 400) -> str:
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (status, "model_not_found"), answer.text
    return str(error["message"])


@pytest.mark.usefixtures("configured")
@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("ask", ASKS)
@pytest.mark.parametrize(
    ("model", "near"),
    [
        ("scripted/dmo", "scripted/demo"),
        ("dmo", "scripted/demo"),
        ("openia/gpt-4.1-mini", "openai/gpt-4.1-mini"),
        ("gpt-4.1-mni", "openai/gpt-4.1-mini"),
    ],
)
def test_an_unknown_model_is_told_the_nearest_one(
    http: httpx.Client, chat: ChatCompletionsServer, ask: Ask, stream: bool, model: str, near: str
) -> None:
    assert error_of(ask(http, model, stream=stream)).endswith(f" Did you mean {near!r}?")
    assert chat.requests == []


@pytest.mark.usefixtures("configured")
@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("ask", ASKS)
def test_a_model_that_its_provider_does_not_have_is_told_the_nearest_one(
    http: httpx.Client, chat: ChatCompletionsServer, ask: Ask, stream: bool
) -> None:
    chat.script(provider.error(404, "No such model"))
    unlisted = ask(http, "openai/gpt-4.1-mimi", stream=stream)
    chat.script(provider.error(404, "No such model"))
    listed = ask(http, "openai/gpt-4.1-mini", stream=stream)

    assert error_of(unlisted).endswith(" Did you mean 'openai/gpt-4.1-mini'?")
    assert "Did you mean" not in error_of(listed)


def test_a_registered_model_is_suggested_too(http: httpx.Client) -> None:
    http.post("/v1/models", json={"model_id": "summaries", "provider_id": "scripted", "provider_model_id": "demo"})

    assert error_of(complete(http, "sumaries")).endswith(" Did you mean 'summaries'?")


@pytest.mark.parametrize("model", ["llama-3.3-70b", "words-38", "x" * 3_000, "scripted/" + "demo" * 500])
def test_nothing_is_suggested_if_no_model_is_similar_or_the_id_is_long(http: httpx.Client, model: str) -> None:
    """An embedding model is not suggested to who needs one that writes."""
    assert "Did you mean" not in error_of(complete(http, model))


def test_a_model_that_is_looked_up_is_told_the_nearest_one(http: httpx.Client) -> None:
    for wrong, near in (("scripted/dmo", "scripted/demo"), ("words-385x", "hashed/words-384")):
        message = error_of(http.get(f"/v1/models/{quote(wrong, safe='')}"), 404)

        assert message == f"Model {wrong!r} not found. Did you mean {near!r}?"
