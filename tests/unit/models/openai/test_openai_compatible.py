import asyncio
import base64
import gc
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from tests.clock import CLOCK
from tests.servers import chat_completions as chat
from tests.servers.chat_completions import EVENT_STREAM, ChatCompletionsServer
from tests.servers.scripted_http import Reply

from stint.domain.content import URL, ImageContentItem, ImageSource, TextContentItem
from stint.domain.errors import (
    ContextLengthExceeded,
    InvalidRequest,
    ModelError,
    ModelOverloaded,
    ModelUnauthorized,
    RateLimited,
)
from stint.domain.inference import (
    Accepted,
    AssistantAnswer,
    Decoding,
    Finished,
    FinishReason,
    GrammarResponseFormat,
    InferenceRequest,
    ModelChunk,
    Reasoning,
    ReasoningChunk,
    ReasoningOptions,
    RefusalChunk,
    SystemText,
    TextChunk,
    ToolCallChunk,
    ToolResult,
    ToolSignature,
    Usage,
    UserInput,
)
from stint.domain.llama_stack.sampling import SamplingParams
from stint.domain.tools import ToolCall
from stint.models.openai_compatible import OpenAICompatible
from stint.models.port import CountNeedsAnswer

KEY = "sk-secret-123"
HELLO = InferenceRequest("demo", (UserInput("Hello you"),), decoding=Decoding(temperature=0.0))
ADD = ToolSignature("add", "Adds", {"type": "object", "properties": {"a": {"type": "integer"}}})


@pytest.fixture
async def model(server: ChatCompletionsServer) -> AsyncIterator[OpenAICompatible]:
    model = OpenAICompatible(server.base_url, KEY, backoff=0.001)
    yield model
    await model.aclose()


async def collect(model: OpenAICompatible, request: InferenceRequest = HELLO) -> list[ModelChunk]:
    return [chunk async for chunk in model.stream(request) if not isinstance(chunk, Accepted)]


async def let_run() -> None:
    """Let other tasks read what has arrived, and wait for what has not."""
    for _ in range(50):
        await asyncio.sleep(0)


async def begin(model: OpenAICompatible) -> AsyncGenerator[ModelChunk, None]:
    """Begin a call that the server accepts."""
    stream = model.stream(HELLO)
    assert await anext(stream) == Accepted()
    return stream


def text_in(chunks: list[ModelChunk]) -> str:
    return "".join(chunk.text for chunk in chunks if isinstance(chunk, TextChunk))


def calls_in(chunks: list[ModelChunk]) -> list[tuple[str, str, str]]:
    calls: dict[int, tuple[str, str, str]] = {}
    for chunk in chunks:
        if isinstance(chunk, ToolCallChunk):
            assert chunk.index in calls or (chunk.call_id and chunk.name)
            call_id, name, arguments = calls.get(chunk.index, ("", "", ""))
            calls[chunk.index] = (call_id + chunk.call_id, name + chunk.name, arguments + chunk.arguments)
    return list(calls.values())


def end_of(chunks: list[ModelChunk]) -> Finished:
    assert [isinstance(chunk, Finished) for chunk in chunks].count(True) == 1
    assert isinstance(chunks[-1], Finished)
    return chunks[-1]


def decoding(**fields: Any) -> Decoding:
    return SamplingParams.model_validate(fields).to_decoding()


class TestAnswers:
    async def test_text_comes_in_the_pieces_of_the_server_with_the_usage(self, model: OpenAICompatible) -> None:
        chunks = await collect(model)

        assert chunks == [
            *(TextChunk(piece) for piece in ("You ", "said: ", "Hello ", "you")),
            Finished(FinishReason.stop, Usage(input_tokens=2, output_tokens=4, total_tokens=6)),
        ]

    async def test_a_conversation_with_a_tool_satisfies_a_strict_server(self, model: OpenAICompatible) -> None:
        question = UserInput('add {"a": 1}')

        first = await collect(model, InferenceRequest("demo", (SystemText("Be kind"), question), tools=(ADD,)))
        ((call_id, name, arguments),) = calls_in(first)
        call = ToolCall(call_id=call_id, tool_name=name, arguments={"a": 1}, arguments_json=arguments)
        messages = (SystemText("Be kind"), question, AssistantAnswer("", (call,)), ToolResult(call_id, name, "3"))
        second = await collect(model, InferenceRequest("demo", messages, tools=(ADD,)))

        assert (name, arguments) == ("add", '{"a": 1}')
        assert end_of(first).reason is FinishReason.tool_calls
        assert text_in(second) == "add said: 3"

    async def test_request_carries_key_and_model_and_reuses_the_connection(
        self, model: OpenAICompatible, server: ChatCompletionsServer
    ) -> None:
        await collect(model)
        await collect(model)

        assert len({request.connection for request in server.requests}) == 1
        assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
        assert server.bodies[0] == {
            "model": "demo",
            "messages": [{"role": "user", "content": "Hello you"}],
            "stream": True,
            "stream_options": {"include_usage": True},
            "temperature": 0.0,
        }

    async def test_key_may_be_a_function_or_missing(self, server: ChatCompletionsServer) -> None:
        async def read_secret() -> str:
            return " from-a-secret\n"

        for key in (read_secret, None):
            model = OpenAICompatible(f"{server.base_url}/", key)
            await collect(model)
            await model.aclose()

        assert server.requests[0].headers["authorization"] == "Bearer from-a-secret"
        assert "authorization" not in server.requests[1].headers

    def test_each_event_loop_gets_connections_of_its_own(self, server: ChatCompletionsServer) -> None:
        model = OpenAICompatible(server.base_url)

        async def last_call() -> str:
            text = text_in(await collect(model))
            await model.aclose()
            return text

        texts = [text_in(asyncio.run(collect(model))), asyncio.run(last_call())]
        gc.collect()

        assert texts == ["You said: Hello you"] * 2

    async def test_text_that_is_no_unicode_is_sent_all_the_same(self, model: OpenAICompatible) -> None:
        chunks = await collect(model, InferenceRequest("demo", (UserInput("half \ud83d pair"),)))

        assert text_in(chunks) == "You said: half ? pair"

    async def test_single_surrogates_and_numbers_that_are_none_are_read(
        self, model: OpenAICompatible, server: ChatCompletionsServer
    ) -> None:
        odd = b'data: {"logprob": NaN, "seed": 1e999, "choices": [{"delta": {"content": "a\\ud800b"}}]}\n\n'
        server.script(chat.stream(odd))

        assert text_in(await collect(model)) == "a?b"

    async def test_first_chunk_arrives_before_the_answer_is_complete(
        self, model: OpenAICompatible, server: ChatCompletionsServer
    ) -> None:
        gate = threading.Event()
        server.script(chat.stream({"content": "a"}, gate, {"content": "b"}))

        stream = await begin(model)
        first = await anext(stream)
        gate.set()
        rest = [chunk async for chunk in stream]

        assert [first, *rest] == [TextChunk("a"), TextChunk("b"), Finished(FinishReason.stop)]


class TestDialects:
    @pytest.mark.parametrize(
        ("finish", "reason"),
        [
            ("stop", FinishReason.stop),
            ("length", FinishReason.length),
            ("content_filter", FinishReason.content_filter),
            ("eos", FinishReason.stop),
            ("tool_calls", FinishReason.stop),
            (None, FinishReason.stop),
        ],
    )
    async def test_finish_reasons(
        self, model: OpenAICompatible, server: ChatCompletionsServer, finish: str | None, reason: FinishReason
    ) -> None:
        server.script(chat.stream({"content": "a"}, finish=finish))

        assert end_of(await collect(model)) == Finished(reason)

    async def test_an_empty_answer_is_only_an_end(self, model: OpenAICompatible, server: ChatCompletionsServer) -> None:
        server.script(chat.stream())

        assert await collect(model) == [Finished(FinishReason.stop)]

    async def test_a_refusal_is_not_text(self, model: OpenAICompatible, server: ChatCompletionsServer) -> None:
        server.script(chat.stream({"refusal": "I "}, {"refusal": "cannot."}, {"content": None}))

        chunks = await collect(model)

        assert chunks[:-1] == [RefusalChunk("I "), RefusalChunk("cannot.")]

    @pytest.mark.parametrize(
        "delta",
        [
            pytest.param({"reasoning_content": "hm"}, id="DeepSeek"),
            pytest.param({"reasoning": "hm"}, id="vLLM"),
            pytest.param({"reasoning": "hm", "reasoning_content": "hm"}, id="vLLM on its way from one to the other"),
            pytest.param(
                {"reasoning": "hm", "reasoning_details": [{"type": "reasoning.text", "text": "hm"}]}, id="OpenRouter"
            ),
            pytest.param(
                {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]}, id="Mistral"
            ),
        ],
    )
    async def test_reasoning_comes_once_whatever_its_name(
        self, model: OpenAICompatible, server: ChatCompletionsServer, delta: dict[str, Any]
    ) -> None:
        server.script(chat.stream({**delta, "role": "assistant"}, {"content": "yes", "reasoning_content": None}))

        chunks = await collect(model)

        assert chunks[:-1] == [ReasoningChunk("hm"), TextChunk("yes")]

    async def test_usage_tells_what_was_cached_and_what_was_thought(
        self, model: OpenAICompatible, server: ChatCompletionsServer
    ) -> None:
        usage = {"prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 14}
        details = {
            "prompt_tokens_details": {"cached_tokens": 5, "cache_write_tokens": 3},
            "completion_tokens_details": {"reasoning_tokens": 4},
        }
        server.script(chat.stream({"content": "a"}, usage=usage | details))

        assert end_of(await collect(model)).usage == Usage(
            input_tokens=9,
            output_tokens=5,
            total_tokens=14,
            cached_tokens=5,
            cache_write_tokens=3,
            reasoning_tokens=4,
        )

    async def test_stream_without_done_ends_with_its_finish_reason(
        self, model: OpenAICompatible, server: ChatCompletionsServer
    ) -> None:
        server.script(chat.stream({"content": "a"}, done=False))

        assert await collect(model) == [TextChunk("a"), Finished(FinishReason.stop)]

    async def test_a_cut_behind_the_finish_reason_loses_only_the_usage(
        self, model: OpenAICompatible, server: ChatCompletionsServer
    ) -> None:
        parts = chat.stream({"content": "a"}, done=False).parts
        server.script(Reply(parts, headers=EVENT_STREAM, ending="cut"))

        assert await collect(model) == [TextChunk("a"), Finished(FinishReason.stop)]

    async def test_a_server_that_stays_open_behind_done_does_not_hold_the_answer(
        self, model: OpenAICompatible, server: ChatCompletionsServer
    ) -> None:
        server.script(Reply(chat.stream({"content": "a"}).parts, headers=EVENT_STREAM, ending="hang"))

        async with asyncio.timeout(30):
            assert text_in(await collect(model)) == "a"

    @pytest.mark.parametrize(
        "usage",
        [
            {"prompt_tokens": "many"},
            {"prompt_tokens": 1e308},
            {"prompt_tokens": [1], "completion_tokens": 2},
            {"prompt_tokens": 1.5},
        ],
    )
    async def test_usage_that_cannot_be_read_costs_no_answer(
        self, server: ChatCompletionsServer, model: OpenAICompatible, usage: dict[str, object]
    ) -> None:
        server.script(chat.stream({"content": "a"}, usage=usage))

        chunks = await collect(model)

        assert text_in(chunks) == "a"
        assert end_of(chunks).usage is None

    async def test_usage_may_come_with_the_last_choice(
        self, model: OpenAICompatible, server: ChatCompletionsServer
    ) -> None:
        choice = {"index": 0, "delta": {"content": "a"}, "finish_reason": "stop"}
        last = chat.sse({"choices": [choice], "usage": {"prompt_tokens": 3, "completion_tokens": 1}})
        server.script(Reply((last, b"data: [DONE]\n\n"), headers=EVENT_STREAM))

        assert end_of(await collect(model)).usage == Usage(input_tokens=3, output_tokens=1, total_tokens=4)

    async def test_comments_and_odd_cuts_between_packets_do_no_harm(
        self, model: OpenAICompatible, server: ChatCompletionsServer
    ) -> None:
        whole = b": PROCESSING\r\n\r\n" + chat.chunk({"content": "h\u00e9"}).replace(b"\n", b"\r\n")
        whole += chat.chunk({}, "stop") + b"data: [DONE]\n\n"
        pieces = tuple(whole[place : place + 7] for place in range(0, len(whole), 7))
        server.script(Reply(pieces, headers=EVENT_STREAM))

        assert text_in(await collect(model)) == "h\u00e9"

    async def test_a_server_that_does_not_stream_is_understood(
        self, model: OpenAICompatible, server: ChatCompletionsServer
    ) -> None:
        message = {"role": "assistant", "content": "Hi", "tool_calls": [chat.whole_call("c1", "add", "{}")]}
        choices = [{"index": 0, "message": message, "finish_reason": "tool_calls"}]
        server.script(chat.document({"choices": choices, "usage": {"prompt_tokens": 1, "completion_tokens": 2}}))

        chunks = await collect(model)

        assert text_in(chunks) == "Hi"
        assert calls_in(chunks) == [("c1", "add", "{}")]
        assert end_of(chunks).usage == Usage(input_tokens=1, output_tokens=2, total_tokens=3)

    @pytest.mark.parametrize(
        ("pieces", "expected"),
        [
            pytest.param(
                [{"index": 0, "id": "c1", "function": {"name": "add", "arguments": '{"a": 1}'}}],
                [("c1", "add", '{"a": 1}')],
                id="whole",
            ),
            pytest.param(
                [
                    {"index": 0, "id": "c1", "function": {"name": "get_"}},
                    {"index": 0, "function": {"name": "weather"}},
                    {"index": 0, "function": {"arguments": "{"}},
                    {"index": 0, "function": {"arguments": "}"}},
                ],
                [("c1", "get_weather", "{}")],
                id="name in pieces",
            ),
            pytest.param(
                [
                    {"index": 0, "id": "c1", "function": {"name": "add", "arguments": ""}},
                    {"index": 0, "id": "c1", "function": {"name": "add", "arguments": "{}"}},
                ],
                [("c1", "add", "{}")],
                id="name repeated",
            ),
            pytest.param(
                [
                    {"id": "c1", "function": {"name": "add", "arguments": "{"}},
                    {"function": {"arguments": "}"}},
                    {"id": "c2", "function": {"name": "add", "arguments": "[]"}},
                ],
                [("c1", "add", "{}"), ("c2", "add", "[]")],
                id="no index",
            ),
            pytest.param(
                [
                    {"index": 0, "id": "c1", "function": {"name": "add", "arguments": "{}"}},
                    {"index": 0, "id": "c2", "function": {"name": "sub", "arguments": "{}"}},
                ],
                [("c1", "add", "{}"), ("c2", "sub", "{}")],
                id="all under index 0",
            ),
            pytest.param(
                [
                    {"index": 1, "id": "c2", "function": {"name": "sub"}},
                    {"index": 0, "id": "c1", "function": {"name": "add"}},
                    {"index": 1, "function": {"arguments": "{2}"}},
                    {"index": 0, "function": {"arguments": "{1}"}},
                ],
                [("c2", "sub", "{2}"), ("c1", "add", "{1}")],
                id="interleaved",
            ),
            pytest.param(
                [{"index": 0, "id": "c1", "function": {"name": "add", "arguments": {"a": 1}}}],
                [("c1", "add", '{"a": 1}')],
                id="arguments as an object",
            ),
            pytest.param(
                [{"index": 0, "id": "c1", "function": {"name": "now", "arguments": None}}],
                [("c1", "now", "")],
                id="no arguments",
            ),
        ],
    )
    async def test_tool_calls_in_every_form(
        self,
        model: OpenAICompatible,
        server: ChatCompletionsServer,
        pieces: list[dict[str, Any]],
        expected: list[tuple[str, str, str]],
    ) -> None:
        server.script(chat.stream(*({"tool_calls": [piece]} for piece in pieces), finish="stop"))

        chunks = await collect(model)

        assert calls_in(chunks) == expected
        assert end_of(chunks).reason is FinishReason.tool_calls

    async def test_calls_without_id_get_different_ones(
        self, model: OpenAICompatible, server: ChatCompletionsServer
    ) -> None:
        call = {"function": {"name": "add", "arguments": "{}"}}
        server.script(chat.stream({"tool_calls": [call]}, {"tool_calls": [call]}))

        first, second = calls_in(await collect(model))

        assert first[1:] == second[1:] == ("add", "{}")
        assert first[0].startswith("call_")
        assert first[0] != second[0]


class TestFailures:
    @pytest.mark.parametrize("status", [401, 403])
    async def test_a_refused_key_is_told_without_the_servers_words_which_may_repeat_it(
        self, model: OpenAICompatible, server: ChatCompletionsServer, status: int
    ) -> None:
        server.script(chat.error(status, f"Incorrect API key provided: {KEY[:6]}***{KEY[-3:]}."))
        settings = rf"answered {status} \(check OPENAI_API_KEY or, in AWS, the secret of STINT_OPENAI_SECRET_ARN.*\)$"

        with pytest.raises(ModelUnauthorized, match=settings) as e:
            await collect(model)

        assert e.value.upstream_status == status
        assert len(server.requests) == 1

    @pytest.mark.parametrize(
        "body",
        [
            b'{"error": "model \'demo\' not found"}',
            b'{"object": "error", "message": "model \'demo\' not found", "code": 404}',
            b'{"detail": "model \'demo\' not found"}',
            b"model 'demo' not found",
        ],
    )
    async def test_error_bodies_of_other_servers_are_read(
        self, model: OpenAICompatible, server: ChatCompletionsServer, body: bytes
    ) -> None:
        server.script(Reply((body,), status=404))

        with pytest.raises(InvalidRequest, match=r"404: model 'demo' not found \(check the model id") as caught:
            await collect(model)

        assert (caught.value.code, caught.value.param) == ("model_not_found", "model")

    async def test_a_long_error_body_is_shortened(self, model: OpenAICompatible, server: ChatCompletionsServer) -> None:
        server.script(Reply((b"<html>" + b"x" * 100_000,), status=418))

        with pytest.raises(ModelError) as caught:
            await collect(model)

        assert len(caught.value.message) < 600

    @pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
    async def test_passing_failures_are_repeated_before_the_first_chunk(
        self, model: OpenAICompatible, server: ChatCompletionsServer, status: int
    ) -> None:
        server.script(chat.error(status, "later"), chat.error(status, "later"))

        chunks = await collect(model)

        assert text_in(chunks) == "You said: Hello you"
        assert len(server.requests) == 3

    @pytest.mark.parametrize(
        ("status", "error"), [(500, ModelError), (429, RateLimited), (503, ModelOverloaded), (529, ModelOverloaded)]
    )
    async def test_the_third_failure_is_the_last(
        self, model: OpenAICompatible, server: ChatCompletionsServer, status: int, error: type[ModelError]
    ) -> None:
        server.script(*[chat.error(status, "later")] * 3)

        with pytest.raises(error) as caught:
            await collect(model)

        assert type(caught.value) is error
        assert caught.value.upstream_status == status
        assert len(server.requests) == 3

    async def test_a_short_retry_after_is_waited_for(
        self, model: OpenAICompatible, server: ChatCompletionsServer
    ) -> None:
        server.script(chat.error(429, "later", {"Retry-After": "0.2"}))
        begin = time.monotonic()

        await collect(model)

        assert time.monotonic() - begin >= 0.2

    @pytest.mark.parametrize("as_date", [False, True])
    async def test_a_long_retry_after_is_handed_on(
        self, model: OpenAICompatible, server: ChatCompletionsServer, as_date: bool
    ) -> None:
        moment = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
        server.script(chat.error(429, "later", {"Retry-After": moment if as_date else "30"}))

        with pytest.raises(RateLimited) as caught:
            await collect(model)

        assert caught.value.retry_after == pytest.approx(30, abs=2)
        assert len(server.requests) == 1

    async def test_an_empty_account_is_no_overload(
        self, model: OpenAICompatible, server: ChatCompletionsServer
    ) -> None:
        server.script(chat.error(429, "You exceeded your current quota", code="insufficient_quota"))

        with pytest.raises(RateLimited, match="quota") as caught:
            await collect(model)

        assert caught.value.code == "insufficient_quota"
        assert len(server.requests) == 1

    @pytest.mark.parametrize(
        "retry_after", ["1" + "0" * 400, "86400", format_datetime(datetime(9999, 1, 1, tzinfo=UTC), usegmt=True)]
    )
    async def test_nobody_is_sent_away_for_more_than_an_hour(
        self, model: OpenAICompatible, server: ChatCompletionsServer, retry_after: str
    ) -> None:
        server.script(chat.error(429, "later", {"Retry-After": retry_after}))

        with pytest.raises(RateLimited) as caught:
            await collect(model)

        assert caught.value.retry_after == 3600

    @pytest.mark.parametrize("status", [400, 413, 422])
    async def test_a_refused_request_is_told_in_the_servers_words_with_the_field_it_names(
        self, model: OpenAICompatible, server: ChatCompletionsServer, status: int
    ) -> None:
        place = "messages[0].content[1]"
        server.script(chat.error(status, f"No image for {KEY}.", code="invalid_image_url", param=place))

        with pytest.raises(InvalidRequest, match=rf"answered {status}: No image for \*+\.") as caught:
            await collect(model)

        assert (caught.value.code, caught.value.param) == ("invalid_image_url", place)
        assert len(server.requests) == 1

    async def test_a_short_key_is_not_looked_for_in_the_servers_words(self, server: ChatCompletionsServer) -> None:
        server.script(chat.error(400, "max tokens is too low"))
        model = OpenAICompatible(server.base_url, "x")

        with pytest.raises(InvalidRequest, match="max tokens is too low"):
            await collect(model)
        await model.aclose()

    @pytest.mark.parametrize(
        ("body", "param"),
        [
            ({"detail": [{"loc": ["body", "messages", 0, "content"], "msg": "x"}]}, "messages[0].content"),
            ({"message": {"detail": [{"loc": ["body", "top_p"], "msg": "x"}]}}, "top_p"),
            ({"error": "max_tokens must be at least 1"}, "max_tokens"),
            ({"error": {"message": "no", "param": "x" * 5000}}, "x" * 100),
            ({"error": {"message": "no", "code": {"a": 1}, "param": None}}, None),
            ({"error": {"message": "no", "code": "9" * 5000}}, None),
            ({"detail": [[], 5]}, None),
        ],
    )
    async def test_the_field_at_fault_is_found_in_errors_of_every_form(
        self, model: OpenAICompatible, server: ChatCompletionsServer, body: Any, param: str | None
    ) -> None:
        server.script(chat.document(body, 422))

        with pytest.raises(InvalidRequest) as caught:
            await collect(model)

        assert (caught.value.code, caught.value.param) == ("invalid_request", param)

    @pytest.mark.parametrize(
        ("message", "fields"),
        [
            ("Your input exceeds the limit", {"code": "context_length_exceeded"}),
            ("This model's maximum context length is 4096 tokens. However, you requested 5000 tokens", {"code": 400}),
            ("The decoder prompt (length 5000) is longer than the maximum model length of 4096.", {}),
            ("the input length exceeds the context length", {"type": "api_error"}),
            ("request (5000 tokens) exceeds the available context size (4096 tokens), try increasing it", {}),
        ],
    )
    async def test_messages_that_do_not_fit_are_told_apart(
        self, model: OpenAICompatible, server: ChatCompletionsServer, message: str, fields: dict[str, Any]
    ) -> None:
        server.script(chat.error(400, message, **fields))

        with pytest.raises(ContextLengthExceeded) as caught:
            await collect(model)

        assert (caught.value.upstream_status, caught.value.param) == (400, "messages")

    async def test_no_server_at_all_says_where_and_what_to_check(self) -> None:
        with ChatCompletionsServer() as server:
            url = server.base_url
        model = OpenAICompatible(url, KEY, backoff=0.001)

        with pytest.raises(ModelError, match=rf"Cannot reach .* {url[7:-3]}: .*\(check OPENAI_BASE_URL\)"):
            await collect(model)
        await model.aclose()

    @pytest.mark.parametrize("url", ["localhost:11434/v1", "ftp://host/v1", "http://[oops/v1", ""])
    async def test_a_malformed_base_url_is_named(self, url: str) -> None:
        model = OpenAICompatible(url)

        with pytest.raises(ModelError, match="check OPENAI_BASE_URL"):
            await collect(model)
        await model.aclose()

    async def test_a_key_that_cannot_be_sent_is_not_shown(self, server: ChatCompletionsServer) -> None:
        model = OpenAICompatible(server.base_url, "sk-\u00e9\u00e9")

        with pytest.raises(ModelError, match="OPENAI_API_KEY") as caught:
            await collect(model)

        assert "\u00e9" not in caught.value.message

    async def test_a_connection_that_breaks_before_the_answer_is_made_again(
        self, model: OpenAICompatible, server: ChatCompletionsServer
    ) -> None:
        server.script(Reply(status=0), Reply(status=0))

        assert text_in(await collect(model)) == "You said: Hello you"

    @pytest.mark.parametrize("ending", ["cut", "finish"])
    async def test_a_cut_stream_is_an_error_and_not_repeated(
        self, model: OpenAICompatible, server: ChatCompletionsServer, ending: Any
    ) -> None:
        server.script(Reply((chat.chunk({"content": "half"}),), headers=EVENT_STREAM, ending=ending))
        stream = await begin(model)

        first = await anext(stream)

        assert first == TextChunk("half")
        with pytest.raises(ModelError, match=r"interrupted|closed the connection"):
            await anext(stream)
        assert len(server.requests) == 1

    async def test_a_stream_cut_before_its_first_chunk_is_repeated(
        self, model: OpenAICompatible, server: ChatCompletionsServer
    ) -> None:
        server.script(Reply((chat.chunk({"role": "assistant"}),), headers=EVENT_STREAM, ending="cut"))

        assert text_in(await collect(model)) == "You said: Hello you"

    async def test_a_stall_ends_the_call(self, model: OpenAICompatible, server: ChatCompletionsServer) -> None:
        server.script(Reply((chat.chunk({"content": "half"}),), headers=EVENT_STREAM, ending="hang"))
        stream = await begin(model)
        await anext(stream)
        reading = asyncio.ensure_future(anext(stream))
        await let_run()
        CLOCK.move(60)

        with pytest.raises(ModelError, match="sent nothing for 60 s"):
            await reading

        assert await asyncio.to_thread(server.requests[0].left.wait, 5)

    async def test_silence_before_the_answer_is_not_repeated(
        self, model: OpenAICompatible, server: ChatCompletionsServer
    ) -> None:
        server.script(Reply(headers=EVENT_STREAM, ending="hang"))
        stream = await begin(model)
        reading = asyncio.ensure_future(anext(stream))
        await let_run()
        CLOCK.move(60)

        with pytest.raises(ModelError, match="sent nothing"):
            await reading

        assert len(server.requests) == 1

    async def test_heartbeats_are_no_stall(self, model: OpenAICompatible, server: ChatCompletionsServer) -> None:
        gates, sent = [threading.Event() for _ in range(3)], [threading.Event() for _ in range(2)]
        beats = [(gate, b": wait\n\n", each.set) for gate, each in zip(gates, sent, strict=False)]
        server.script(chat.stream(*beats[0], *beats[1], gates[2], {"content": "a"}))
        stream = await begin(model)
        reading = asyncio.ensure_future(anext(stream))

        for gate, each in zip(gates, sent, strict=False):
            await let_run()
            CLOCK.move(40)
            gate.set()
            assert await asyncio.to_thread(each.wait, 30)
        await let_run()
        CLOCK.move(40)
        gates[2].set()

        assert text_in([await reading]) == "a"

    @pytest.mark.parametrize(
        "line",
        [
            b"data: {broken\n\n",
            b"data: [1]\n\n",
            b'data: {"choices": [7]}\n\n',
            b"data: " + b"[" * 100_000 + b"\n\n",
        ],
        ids=["cut", "a list", "a number", "too deep"],
    )
    async def test_broken_json_is_an_error(
        self, model: OpenAICompatible, server: ChatCompletionsServer, line: bytes
    ) -> None:
        server.script(chat.stream({"content": "a"}, line))

        with pytest.raises(ModelError, match=r"invalid JSON|not a chat completion"):
            await collect(model)

    async def test_arguments_of_any_depth_are_read_or_an_error_of_the_provider(
        self, model: OpenAICompatible, server: ChatCompletionsServer
    ) -> None:
        for depth in range(900, 1000, 2):
            deep = "[" * depth + "]" * depth
            call = f'{{"function": {{"name": "a", "arguments": {deep}}}}}'
            text = f'{{"choices": [{{"delta": {{"tool_calls": [{call}]}}}}]}}'
            server.script(chat.stream(f"data: {text}\n\n".encode()))
            with suppress(ModelError):
                await collect(model)

    @pytest.mark.parametrize(
        ("fields", "error"),
        [
            ({}, ModelError),
            ({"code": 429}, RateLimited),
            ({"code": "rate_limit_exceeded"}, RateLimited),
            ({"code": 400, "type": "BadRequestError"}, InvalidRequest),
            ({"type": "invalid_request_error"}, InvalidRequest),
            ({"type": "overloaded_error"}, ModelOverloaded),
            ({"code": "model_overloaded", "type": "model_error"}, ModelOverloaded),
            ({"code": "server_is_overloaded"}, ModelOverloaded),
            ({"code": "9" * 5000}, ModelError),
            ({"code": "context_length_exceeded"}, ContextLengthExceeded),
        ],
    )
    async def test_an_error_in_the_stream_is_raised(
        self, model: OpenAICompatible, server: ChatCompletionsServer, fields: dict[str, Any], error: type[ModelError]
    ) -> None:
        server.script(chat.stream({"content": "a"}, chat.sse({"error": {"message": "it went wrong", **fields}})))

        with pytest.raises(error, match="it went wrong") as caught:
            await collect(model)

        assert type(caught.value) is error
        assert len(server.requests) == 1

    async def test_a_page_instead_of_a_stream_hints_at_the_base_url(
        self, model: OpenAICompatible, server: ChatCompletionsServer
    ) -> None:
        server.script(Reply((b"<html>",), headers={"Content-Type": "text/html"}))

        with pytest.raises(ModelError, match=r"text/html.*OPENAI_BASE_URL"):
            await collect(model)

    async def test_a_redirect_hints_at_the_base_url(
        self, model: OpenAICompatible, server: ChatCompletionsServer
    ) -> None:
        server.script(Reply(status=307, headers={"Location": "https://example.com/"}))

        with pytest.raises(ModelError, match=r"307.*OPENAI_BASE_URL"):
            await collect(model)

    @pytest.mark.parametrize("key", ["x", "none", "EMPTY", "m"])
    async def test_a_short_key_is_never_replaced_in_the_servers_words(
        self, server: ChatCompletionsServer, key: str
    ) -> None:
        server.script(chat.error(400, "max_tokens: none is EMPTY"))
        model = OpenAICompatible(server.base_url, key)

        with pytest.raises(InvalidRequest, match="max_tokens: none is EMPTY"):
            await collect(model)
        await model.aclose()

    async def test_a_key_that_the_server_repeats_is_redacted_also_in_base64(
        self, server: ChatCompletionsServer
    ) -> None:
        key = "sk-1234567890"
        server.script(chat.error(500, f"got {key}, {base64.b64encode(f'user:{key}'.encode()).decode()}"))
        model = OpenAICompatible(server.base_url, key, repeats=0)

        with pytest.raises(ModelError) as caught:
            await collect(model)
        await model.aclose()

        assert "got ***, dXNlcjp***" in caught.value.message

    async def test_a_redirect_is_not_followed_whatever_its_address_is(
        self, model: OpenAICompatible, server: ChatCompletionsServer
    ) -> None:
        server.script(Reply(status=302, headers={"Location": "http://xn--a/"}))

        with pytest.raises(ModelError, match=r"answered 302.*OPENAI_BASE_URL"):
            await collect(model)
        assert len(server.requests) == 1

    @pytest.mark.parametrize("how", ["aclose", "cancel"])
    async def test_leaving_ends_the_request_of_the_server(self, server: ChatCompletionsServer, how: str) -> None:
        server.script(chat.stream({"content": "a"}, threading.Event()))
        model = OpenAICompatible(server.base_url)
        stream = await begin(model)
        await anext(stream)

        if how == "aclose":
            await stream.aclose()
        else:
            task = asyncio.ensure_future(anext(stream))
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

        assert await asyncio.to_thread(server.requests[0].left.wait, 5)
        await model.aclose()


class TestParametersThatAModelRefuses:
    async def test_a_reasoning_model_is_asked_without_temperature_and_with_its_own_limit(
        self, model: OpenAICompatible, server: ChatCompletionsServer
    ) -> None:
        server.script(
            chat.error(400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."),
            chat.error(400, "Unsupported value: 'temperature' does not support 0 with this model."),
        )
        request = InferenceRequest("o9", HELLO.messages, decoding=decoding(max_tokens=5))

        await collect(model, request)
        await collect(model, request)

        assert len(server.bodies) == 4
        for body in server.bodies[2:]:
            assert body["max_completion_tokens"] == 5
            assert not {"max_tokens", "temperature"} & set(body)

    async def test_a_server_without_stream_options_is_asked_without(
        self, model: OpenAICompatible, server: ChatCompletionsServer
    ) -> None:
        server.script(chat.document({"detail": [{"type": "extra_forbidden", "loc": ["body", "stream_options"]}]}, 422))

        chunks = await collect(model)

        assert end_of(chunks).usage is None
        assert "stream_options" not in server.bodies[1]

    async def test_a_refusal_that_stays_is_asked_twice_only(
        self, model: OpenAICompatible, server: ChatCompletionsServer
    ) -> None:
        server.script(*[chat.error(400, "bad temperature")] * 3)

        with pytest.raises(InvalidRequest, match="bad temperature"):
            await collect(model)

        assert len(server.requests) == 2

    async def test_a_temperature_that_was_chosen_is_not_dropped(
        self, model: OpenAICompatible, server: ChatCompletionsServer
    ) -> None:
        server.script(chat.error(400, "Unsupported value: 'temperature' does not support 0.7 with this model."))
        strategy = {"type": "top_p", "temperature": 0.7}

        with pytest.raises(InvalidRequest, match=r"does not support 0\.7") as caught:
            await collect(model, InferenceRequest("o9", HELLO.messages, decoding=decoding(strategy=strategy)))

        assert caught.value.param == "temperature"

    async def test_a_model_that_wants_its_reasoning_back_gets_it_from_then_on(
        self, model: OpenAICompatible, server: ChatCompletionsServer
    ) -> None:
        message = "Missing `reasoning_content` field in the assistant message at message index 1."
        server.script(chat.error(400, message), chat.stream({"content": "a"}), chat.stream({"content": "b"}))
        thought = AssistantAnswer("", (ToolCall(call_id="c", tool_name="add", arguments={}),), Reasoning(text="hm"))
        messages = (*HELLO.messages, AssistantAnswer("Hi"), thought, ToolResult("c", "add", "3"))
        request = InferenceRequest("deepseek-reasoner", messages, tools=(ADD,))

        await collect(model, request)
        await collect(model, request)

        sent = [[each.get("reasoning_content") for each in body["messages"]] for body in server.bodies]
        assert sent == [[None] * 4, [None, "", "hm", None], [None, "", "hm", None]]

    @pytest.mark.parametrize("name", ["top_k", "repetition_penalty"])
    async def test_a_parameter_that_openai_does_not_know_is_named(
        self, model: OpenAICompatible, server: ChatCompletionsServer, name: str
    ) -> None:
        server.script(chat.error(400, f"Unrecognized request argument supplied: {name}"))
        params = decoding(strategy={"type": "top_k", "top_k": 5}, repetition_penalty=1.2)

        with pytest.raises(InvalidRequest, match=f"does not support this {name}") as caught:
            await collect(model, InferenceRequest("demo", HELLO.messages, decoding=params))

        assert caught.value.param == "sampling_params"

    async def test_an_effort_that_a_model_does_not_know_is_named(
        self, model: OpenAICompatible, server: ChatCompletionsServer
    ) -> None:
        server.script(chat.error(400, "Unsupported value.", param="reasoning_effort"))
        request = replace(HELLO, reasoning=ReasoningOptions(effort="max"))

        with pytest.raises(InvalidRequest, match="reasoning_effort") as caught:
            await collect(model, request)

        assert caught.value.param == "reasoning.effort"


class TestCheck:
    @pytest.mark.parametrize("host", ["api.openai.com", "eu.api.openai.com"])
    @pytest.mark.parametrize("params", [Decoding(top_k=5), Decoding(repetition_penalty=1.2)])
    def test_what_openai_itself_lacks_is_refused_unasked(self, host: str, params: Decoding) -> None:
        with pytest.raises(InvalidRequest, match="OpenAI") as caught:
            OpenAICompatible(f"https://{host}/v1").check(replace(HELLO, decoding=params))

        assert caught.value.param == "sampling_params"

    def test_another_server_may_have_it(self) -> None:
        params = Decoding(top_k=5, repetition_penalty=1.2, seed=1, presence_penalty=0.5)

        OpenAICompatible("http://api.openai.com.example/v1").check(replace(HELLO, decoding=params))

    def test_a_grammar_is_refused(self) -> None:
        with pytest.raises(InvalidRequest, match="grammar") as caught:
            OpenAICompatible("http://127.0.0.1/v1").check(replace(HELLO, response_format=GrammarResponseFormat(bnf={})))

        assert caught.value.param == "response_format"


async def test_chat_completions_count_no_tokens_without_an_answer(model: OpenAICompatible) -> None:
    with pytest.raises(CountNeedsAnswer, match="'demo'"):
        await model.count_tokens(HELLO)


PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n....").decode()


async def test_images_reach_the_server_also_those_of_tools(
    model: OpenAICompatible, server: ChatCompletionsServer
) -> None:
    image = ImageContentItem(image=ImageSource(data=PNG))
    link = ImageContentItem(image=ImageSource(url=URL(uri="https://example.com/a.png")))
    call = ToolCall(call_id="c1", tool_name="chart", arguments={})
    messages = (
        UserInput([TextContentItem(text="Draw"), link]),
        AssistantAnswer("", (call,)),
        ToolResult("c1", "chart", [image]),
    )

    await collect(model, InferenceRequest("demo", messages))

    sent = server.bodies[0]["messages"]
    assert sent[0]["content"][1] == {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}
    assert [message["role"] for message in sent] == ["user", "assistant", "tool", "user"]
    assert sent[3]["content"][1]["image_url"]["url"] == f"data:image/png;base64,{PNG}"
