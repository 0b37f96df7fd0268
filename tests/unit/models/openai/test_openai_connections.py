"""Connections to a chat completions server, which are reused and may be dropped while idle."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable

import pytest
from tests.clock import CLOCK
from tests.servers import chat_completions as chat
from tests.servers.chat_completions import EVENT_STREAM, ChatCompletionsServer
from tests.servers.scripted_http import Reply

from stint.domain.errors import ModelError
from stint.domain.inference import InferenceRequest, TextChunk, UserInput
from stint.models.openai_compatible import OpenAICompatible

HELLO = InferenceRequest("demo", (UserInput("Hello"),))


@pytest.fixture
async def model(server: ChatCompletionsServer) -> AsyncIterator[OpenAICompatible]:
    """A model that retries no failure of the server."""
    model = OpenAICompatible(server.base_url, repeats=0)
    yield model
    await model.aclose()


async def ask(model: OpenAICompatible) -> str:
    return "".join([chunk.text async for chunk in model.stream(HELLO) if isinstance(chunk, TextChunk)])


async def ask_at_once(model: OpenAICompatible, server: ChatCompletionsServer, count: int) -> None:
    """Ask on as many connections at once: no answer ends before the server has all requests."""
    asked, all_asked = len(server.requests), threading.Event()
    server.script(*(chat.stream(all_asked, {"content": "a"}) for _ in range(count)))
    calls = [asyncio.create_task(ask(model)) for _ in range(count)]
    await until(lambda: len(server.requests) == asked + count)
    all_asked.set()
    await asyncio.gather(*calls)


async def until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110 - the server is in another thread
        await asyncio.sleep(0.001)


@pytest.mark.parametrize(("seconds", "connections"), [(50, [1, 1]), (60, [1, 2])])
async def test_a_connection_is_kept_for_most_of_a_minute(
    model: OpenAICompatible, server: ChatCompletionsServer, seconds: int, connections: list[int]
) -> None:
    await ask(model)
    CLOCK.move(seconds)
    await ask(model)

    assert [request.connection for request in server.requests] == connections


async def test_the_connections_of_many_calls_at_once_are_all_kept(
    model: OpenAICompatible, server: ChatCompletionsServer
) -> None:
    for _ in range(2):
        await ask_at_once(model, server, 30)

    assert {request.connection for request in server.requests} == set(range(1, 31))


async def test_a_connection_that_was_dropped_while_idle_is_no_failure_of_the_server(
    model: OpenAICompatible, server: ChatCompletionsServer
) -> None:
    await ask(model)
    server.script(Reply(status=0))

    assert await ask(model) == "You said: Hello"
    assert [request.connection for request in server.requests] == [1, 1, 2]


async def test_all_connections_may_have_been_dropped(model: OpenAICompatible, server: ChatCompletionsServer) -> None:
    await ask_at_once(model, server, 5)
    server.script(Reply(status=0))

    assert await ask(model) == "You said: Hello"
    assert len(server.requests) == 7, "the others are not tried, too"


async def test_a_new_connection_that_is_dropped_is_a_failure_of_the_server(
    model: OpenAICompatible, server: ChatCompletionsServer
) -> None:
    await ask(model)
    server.script(Reply(status=0), Reply(status=0))

    with pytest.raises(ModelError, match="closed the connection"):
        await ask(model)

    assert len(server.requests) == 3


async def test_an_answer_that_breaks_on_a_reused_connection_is_a_failure_of_the_server(
    model: OpenAICompatible, server: ChatCompletionsServer
) -> None:
    await ask(model)
    server.script(Reply(headers=EVENT_STREAM, ending="cut"))

    with pytest.raises(ModelError, match="closed the connection"):
        await ask(model)

    assert len(server.requests) == 2


async def test_silence_on_a_reused_connection_is_a_failure_of_the_server(
    model: OpenAICompatible, server: ChatCompletionsServer
) -> None:
    await ask(model)
    server.script(Reply(headers=EVENT_STREAM, before=3000.0))
    asking = asyncio.create_task(ask(model))
    await until(lambda: len(server.requests) == 2)
    for _ in range(50):
        await asyncio.sleep(0)  # the client begins to wait for the answer
    CLOCK.move(61)

    with pytest.raises(ModelError, match="sent nothing"):
        await asking


@pytest.mark.parametrize("encoding", ["gzip", "br", "x" * 5000])
async def test_a_body_with_an_encoding_is_an_error_of_the_server(
    model: OpenAICompatible, server: ChatCompletionsServer, encoding: str
) -> None:
    server.script(Reply((b"\x1f\x8b",), headers={**EVENT_STREAM, "Content-Encoding": encoding}))

    with pytest.raises(ModelError, match="which was not requested") as raised:
        await ask(model)

    assert server.requests[0].headers["accept-encoding"] == "identity"
    assert len(raised.value.message) < 600
