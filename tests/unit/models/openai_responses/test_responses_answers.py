"""Answers of the Responses API: text, calls, refusals, every ending, and servers that send fewer events."""

import asyncio
import threading
from typing import Any

import pytest
from tests.servers.chat_completions import document, error
from tests.servers.model_responses import (
    USAGE,
    ModelResponsesServer,
    call,
    events_of,
    failed,
    message,
    only,
    refused,
    reply,
    response,
    stream,
    thought,
    whole,
)
from tests.servers.scripted_http import Reply
from tests.unit.models.openai_responses.calling import (
    ADD,
    asked,
    calls_in,
    collect,
    connect,
    end_of,
    read,
    refusal_in,
    text_in,
    thoughts_in,
)

from stint.domain.errors import (
    ContextLengthExceeded,
    InvalidRequest,
    ModelError,
    ModelOverloaded,
    ModelUnauthorized,
    RateLimited,
)
from stint.domain.inference import Finished, FinishReason, TextChunk, TokenLogprob, Usage, UserInput

ITEMS = [thought("Two ", "thoughts"), message("Let me see."), call("c1", "add", '{"a": 1}'), call("c2", "add")]
WHOLE = ("Two \n\nthoughts", "Let me see.", [("c1", "add", '{"a": 1}'), ("c2", "add", "{}")])


def parts_in(chunks: Any) -> Any:
    return thoughts_in(chunks), text_in(chunks), calls_in(chunks)


async def test_text_comes_in_the_pieces_of_the_server_with_the_usage(server: ModelResponsesServer) -> None:
    chunks = await read(server)

    assert chunks == [
        *(TextChunk(piece) for piece in ("You ", "said: ", "Hello ", "you")),
        Finished(
            FinishReason.stop,
            Usage(
                input_tokens=11,
                output_tokens=7,
                total_tokens=18,
                cached_tokens=4,
                cache_write_tokens=2,
                reasoning_tokens=3,
            ),
        ),
    ]
    assert server.stored == []


async def test_parallel_calls_come_with_their_ids(server: ModelResponsesServer) -> None:
    chunks = await read(server, stream(*ITEMS), asked(tools=(ADD,)))

    assert parts_in(chunks) == WHOLE
    assert end_of(chunks).reason is FinishReason.tool_calls


FEWER = {
    "a whole response": whole(*ITEMS),
    "only the end": reply(only(events_of(*ITEMS), "completed")),
    "only the ends of items": reply(only(events_of(*ITEMS), "output_item.done", "completed")),
    "no beginnings": reply(only(events_of(*ITEMS), "delta", "output_item.done", "completed")),
    "only deltas": reply(only(events_of(*ITEMS), "output_item.added", "delta", "completed")),
    "an end without items": reply(
        [*only(events_of(*ITEMS), "output_item.done"), {"type": "response.completed", "response": response()}]
    ),
    "no type of status": reply(
        [*events_of(*ITEMS)[:-1], {"type": "response.completed", "response": {"object": "response"}}]
    ),
    "the mark of Chat Completions": reply([*events_of(*ITEMS), b"data: [DONE]\n\n"]),
    "comments": reply([b": ping\n\n", *events_of(*ITEMS)]),
    "unknown events": reply([{"type": "keepalive"}, {"type": "response.new.delta", "delta": 1}, *events_of(*ITEMS)]),
}


@pytest.mark.parametrize("name", FEWER)
async def test_what_a_server_does_not_stream_is_read_from_what_follows(server: ModelResponsesServer, name: str) -> None:
    chunks = await read(server, FEWER[name], asked(tools=(ADD,)))

    assert parts_in(chunks) == WHOLE
    assert end_of(chunks).reason is FinishReason.tool_calls


async def test_a_refusal_is_streamed_as_a_refusal(server: ModelResponsesServer) -> None:
    for answer in (stream(refused("I will not.")), whole(refused("I will not."))):
        chunks = await read(server, answer)

        assert refusal_in(chunks) == "I will not."
        assert text_in(chunks) == ""


async def test_two_messages_are_one_text(server: ModelResponsesServer) -> None:
    chunks = await read(server, stream(message("One.", item_id="a"), message("Two.", item_id="b")))

    assert text_in(chunks) == "One.\n\nTwo."


async def test_log_probabilities_belong_to_their_pieces(server: ModelResponsesServer) -> None:
    scores = [{"token": word, "logprob": -1.0, "bytes": [1], "top_logprobs": []} for word in ("One ", "two")]
    item = message("One two", logprobs=scores)
    expected = [TokenLogprob(word, -1.0, (1,)) for word in ("One ", "two")]

    streamed = await read(server, stream(item), asked(top_logprobs=2))
    unstreamed = await read(server, whole(item), asked(top_logprobs=2))

    assert [chunk.logprobs for chunk in streamed if isinstance(chunk, TextChunk)] == [(each,) for each in expected]
    assert [chunk.logprobs for chunk in unstreamed if isinstance(chunk, TextChunk)] == [tuple(expected)]
    assert [(body["top_logprobs"], body["include"][1]) for body in server.bodies] == [
        (2, "message.output_text.logprobs")
    ] * 2


async def test_arguments_that_are_an_object_are_read(server: ModelResponsesServer) -> None:
    item = {**call("c1", "add"), "arguments": {"a": 1}}

    chunks = await read(server, whole(item), asked(tools=(ADD,)))

    assert calls_in(chunks) == [("c1", "add", '{"a": 1}')]


async def test_items_without_an_index_are_told_apart_by_their_ids(server: ModelResponsesServer) -> None:
    events = [{k: v for k, v in event.items() if k != "output_index"} for event in events_of(*ITEMS)]

    assert parts_in(await read(server, reply(events), asked(tools=(ADD,)))) == WHOLE


async def test_an_item_that_the_end_has_at_another_place_is_not_read_as_what_it_is_not(
    server: ModelResponsesServer,
) -> None:
    """Some servers leave reasoning out of the last event."""
    events = [*only(events_of(*ITEMS), "delta", "added"), *events_of(*ITEMS[1:])[-1:]]

    chunks = await read(server, reply(events), asked(tools=(ADD,)))

    assert parts_in(chunks) == WHOLE


# ---- endings


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("max_output_tokens", FinishReason.length),
        ("content_filter", FinishReason.content_filter),
        ("boredom", FinishReason.length),
        (None, FinishReason.length),
    ],
)
async def test_an_incomplete_answer_has_its_reason(
    server: ModelResponsesServer, reason: str | None, expected: FinishReason
) -> None:
    for answer in (stream, whole):
        chunks = await read(server, answer(message("One"), status="incomplete", reason=reason))

        assert text_in(chunks) == "One"
        assert end_of(chunks).reason is expected
        assert end_of(chunks).usage is not None


FAILURES = [
    ("server_error", ModelError),
    ("vector_store_timeout", ModelError),
    ("rate_limit_exceeded", RateLimited),
    ("context_length_exceeded", ContextLengthExceeded),
    ("invalid_prompt", InvalidRequest),
    ("invalid_image", InvalidRequest),
    ("image_too_large", InvalidRequest),
    ("unsupported_image_media_type", InvalidRequest),
    ("insufficient_quota", RateLimited),
    ("overloaded_error", ModelOverloaded),
]


@pytest.mark.parametrize(("code", "expected"), FAILURES)
async def test_a_failed_answer_is_the_error_of_its_code(
    server: ModelResponsesServer, code: str, expected: type[ModelError]
) -> None:
    fault = {"code": code, "message": "It failed."}
    answers = [
        failed(code),
        document(response(status="failed", error=fault)),
        reply([*events_of()[:2], {"type": "error", "param": None, **fault}]),
        reply([*events_of()[:2], {"type": "error", "error": fault}]),
        reply([*events_of()[:2], {"error": fault}]),
    ]
    for answer in answers:
        with pytest.raises(expected, match="It failed") as raised:
            await read(server, answer)

        assert type(raised.value) is expected
    assert len(server.requests) == len(answers)


async def test_a_cancelled_answer_is_an_error(server: ModelResponsesServer) -> None:
    cancelled = response(message("One"), status="cancelled")
    for answer in (document(cancelled), reply([{"type": "response.cancelled", "response": cancelled}])):
        with pytest.raises(ModelError, match="cancelled"):
            await read(server, answer)


async def test_an_answer_that_has_not_ended_is_an_error(server: ModelResponsesServer) -> None:
    """Some servers answer a request at once, and work on it later."""
    for status in ("queued", "in_progress"):
        with pytest.raises(ModelError, match=status):
            await read(server, document(response(status=status)))


@pytest.mark.parametrize("body", [{}, {"status": "ok"}, {"object": "list", "data": []}, [], "yes", None, 7])
async def test_json_that_is_no_response_is_an_error(server: ModelResponsesServer, body: Any) -> None:
    with pytest.raises(ModelError, match="response event"):
        await read(server, document(body))


async def test_an_answer_ends_with_its_last_event_although_the_server_stays_silent(
    server: ModelResponsesServer,
) -> None:
    server.script(reply(events_of(message("One")), ending="hang"))
    model = connect(server, stall_timeout=3600)

    async with asyncio.timeout(20):
        chunks = await collect(model)

    assert text_in(chunks) == "One"
    await model.aclose()


async def test_the_connection_of_an_answer_is_used_again(server: ModelResponsesServer) -> None:
    model = connect(server)

    for _ in range(3):
        await collect(model)

    assert {request.connection for request in server.requests} == {1}
    await model.aclose()


async def test_a_connection_that_breaks_after_the_end_does_not_matter(server: ModelResponsesServer) -> None:
    assert text_in(await read(server, reply(events_of(message("One")), ending="cut"))) == "One"


# ---- retries


@pytest.mark.parametrize("ending", ["cut", "finish"])
async def test_a_stream_that_is_cut_before_the_first_piece_is_repeated(
    server: ModelResponsesServer, ending: Any
) -> None:
    model = connect(server)
    server.script(reply(events_of(message("One"))[:3], ending=ending))

    assert text_in(await collect(model)) == "You said: Hello you"
    assert len(server.requests) == 2
    await model.aclose()


async def test_a_stream_that_is_cut_after_hidden_reasoning_is_an_error(server: ModelResponsesServer) -> None:
    """The server charges for the reasoning, although there is no piece of an answer."""
    model = connect(server)
    server.script(reply(events_of(thought(""), message("One"))[:3], ending="cut"))

    with pytest.raises(ModelError, match="closed the connection"):
        await collect(model)

    assert len(server.requests) == 1
    await model.aclose()


async def test_only_the_beginning_of_an_errors_body_is_read(server: ModelResponsesServer) -> None:
    rest = threading.Event()
    server.script(Reply((b'{"error": "' + b"x" * 70_000, rest), 500, {"Content-Type": "application/json"}))

    with pytest.raises(ModelError, match="answered 500"):
        await read(server)

    rest.set()


@pytest.mark.parametrize("ending", ["cut", "finish"])
async def test_a_stream_that_is_cut_after_the_first_piece_is_an_error(
    server: ModelResponsesServer, ending: Any
) -> None:
    model = connect(server)
    server.script(reply(events_of(message("One two"))[:-4], ending=ending))

    with pytest.raises(ModelError, match=r"interrupted|closed the connection"):
        await collect(model)

    assert len(server.requests) == 1
    await model.aclose()


async def test_a_rate_limit_is_repeated_after_its_pause(server: ModelResponsesServer) -> None:
    model = connect(server)
    server.script(error(429, "Slow down", {"Retry-After": "0.01"}, code="rate_limit_exceeded"))

    assert text_in(await collect(model)) == "You said: Hello you"
    await model.aclose()


async def test_a_rate_limit_with_a_long_pause_is_told(server: ModelResponsesServer) -> None:
    model = connect(server)
    server.script(error(429, "Slow down", {"Retry-After": "30"}, code="rate_limit_exceeded"))

    with pytest.raises(RateLimited) as raised:
        await collect(model)

    assert raised.value.retry_after == 30
    assert len(server.requests) == 1
    await model.aclose()


async def test_a_wrong_key_is_told_without_it(server: ModelResponsesServer) -> None:
    message_of = "Incorrect API key provided: sk-secret-123."

    with pytest.raises(ModelUnauthorized) as raised:
        await read(server, error(401, message_of, code="invalid_api_key"))

    assert "sk-secret" not in raised.value.message
    assert server.requests[0].headers["authorization"] == "Bearer sk-secret-123"


async def test_an_error_of_the_request_names_its_parameter_as_chat_completions_do(server: ModelResponsesServer) -> None:
    with pytest.raises(InvalidRequest, match="Bad image") as raised:
        await read(server, error(400, "Bad image", type="invalid_request_error", param="input[0].content"))

    assert raised.value.param == "messages"


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (None, None),
        ({}, None),
        ({"input_tokens": 3, "output_tokens": 4}, Usage(input_tokens=3, output_tokens=4, total_tokens=7)),
        ({**USAGE, "input_tokens": -1}, None),
        (
            {**USAGE, "input_tokens_details": None, "output_tokens_details": 7},
            Usage(input_tokens=11, output_tokens=7, total_tokens=18),
        ),
    ],
)
async def test_the_usage_is_that_of_the_server(
    server: ModelResponsesServer, usage: dict[str, Any] | None, expected: Usage | None
) -> None:
    assert end_of(await read(server, stream(message("One"), usage=usage))).usage == expected


async def test_nothing_is_stored_by_the_server(server: ModelResponsesServer) -> None:
    await read(server, None, asked(UserInput("add {}"), tools=(ADD,)))

    assert (server.stored, server.bodies[0]["include"]) == ([], ["reasoning.encrypted_content"])
    assert {"previous_response_id", "conversation", "metadata"}.isdisjoint(server.bodies[0])
