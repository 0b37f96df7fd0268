import asyncio
import base64
import threading
from collections.abc import AsyncGenerator, Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.servers import converse_stream as converse
from tests.servers.converse_stream import ConverseStreamServer
from tests.servers.scripted_http import Reply
from tests.unit.models.bedrock.conftest import assert_no_threads

from stint.domain.content import ImageContentItem, ImageSource, TextContentItem
from stint.domain.errors import (
    ContextLengthExceeded,
    InvalidRequest,
    ModelError,
    ModelOverloaded,
    ModelUnauthorized,
    NotSupported,
    RateLimited,
    StintError,
)
from stint.domain.inference import (
    Accepted,
    AssistantAnswer,
    Decoding,
    Finished,
    FinishReason,
    InferenceRequest,
    ModelChunk,
    Reasoning,
    ReasoningChunk,
    ReasoningOptions,
    SystemText,
    TextChunk,
    ToolCallChunk,
    ToolResult,
    ToolSignature,
    Usage,
    UserInput,
)
from stint.domain.llama_stack.sampling import SamplingParams
from stint.domain.tools import ToolCall, ToolChoice
from stint.models.bedrock.model import Bedrock
from stint.providers.bedrock.client import connect

ADD = ToolSignature("add", "Adds", {"type": "object", "properties": {"a": {"type": "integer"}}})
GREEDY = Decoding(temperature=0.0)
CLAUDE = "anthropic.claude-sonnet-4-5-20250929-v1:0"
HELLO = InferenceRequest("eu.amazon.nova-pro-v1:0", (UserInput("Hello you"),), decoding=GREEDY)
PNG = b"\x89PNG\r\n\x1a\n...."


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110 - what is waited for happens in another thread
            await asyncio.sleep(0.001)


async def collect(model: Bedrock, request: InferenceRequest = HELLO) -> list[ModelChunk]:
    return [chunk async for chunk in model.stream(request) if not isinstance(chunk, Accepted)]


async def begin(model: Bedrock) -> AsyncGenerator[ModelChunk, None]:
    """Begin a call that the service accepts."""
    stream = model.stream(HELLO)
    assert await anext(stream) == Accepted()
    return stream


def text_in(chunks: list[ModelChunk]) -> str:
    return "".join(chunk.text for chunk in chunks if isinstance(chunk, TextChunk))


def end_of(chunks: list[ModelChunk]) -> Finished:
    assert isinstance(chunks[-1], Finished)
    return chunks[-1]


class TestAnswers:
    async def test_text_comes_in_the_pieces_of_the_service_with_the_usage(
        self, model: Bedrock, server: ConverseStreamServer
    ) -> None:
        chunks = await collect(model)

        assert chunks == [
            *(TextChunk(piece) for piece in ("You ", "said: ", "Hello ", "you")),
            Finished(FinishReason.stop, Usage(input_tokens=5, output_tokens=7, total_tokens=12)),
        ]

    async def test_text_and_two_calls_whose_input_is_streamed(
        self, model: Bedrock, server: ConverseStreamServer
    ) -> None:
        server.script(
            converse.stream(
                converse.reasoning({"text": "hm"}),
                *converse.text_block("Moment.", block=1),
                *converse.tool_block("t1", "add", "", '{"a"', ": 1}", block=2),
                *converse.tool_block("t2", "now", block=3),
                stop="tool_use",
            )
        )

        chunks = await collect(model)

        assert chunks[:-1] == [
            ReasoningChunk("hm"),
            TextChunk("Moment."),
            ToolCallChunk(0, call_id="t1", name="add"),
            ToolCallChunk(0, arguments='{"a"'),
            ToolCallChunk(0, arguments=": 1}"),
            ToolCallChunk(1, call_id="t2", name="now"),
        ]
        assert end_of(chunks).reason is FinishReason.tool_calls

    @pytest.mark.parametrize(
        ("stop", "reason"),
        [
            ("end_turn", FinishReason.stop),
            ("stop_sequence", FinishReason.stop),
            ("max_tokens", FinishReason.length),
            ("guardrail_intervened", FinishReason.content_filter),
            ("content_filtered", FinishReason.content_filter),
            ("something_new", FinishReason.stop),
        ],
    )
    async def test_stop_reasons(
        self, model: Bedrock, server: ConverseStreamServer, stop: str, reason: FinishReason
    ) -> None:
        server.script(converse.stream(stop=stop))

        assert end_of(await collect(model)).reason is reason

    async def test_a_conversation_with_tools_satisfies_a_strict_service(
        self, model: Bedrock, server: ConverseStreamServer
    ) -> None:
        calls = tuple(ToolCall(call_id=f"call/{n}", tool_name="add", arguments={"a": n}) for n in (1, 2))
        messages = (
            SystemText("Be kind"),
            SystemText(" "),
            UserInput("Add"),
            UserInput([TextContentItem(text=""), ImageContentItem(image=ImageSource(data=b64(PNG)))]),
            AssistantAnswer("", calls),
            ToolResult("call/1", "add", "3"),
            ToolResult("call/2", "add", ""),
            UserInput("And?"),
            AssistantAnswer(" ", ()),
            UserInput(""),
        )

        chunks = await collect(model, InferenceRequest(HELLO.model, messages, tools=(ADD,)))

        assert text_in(chunks) == "You said: call_1 gave 3; call_2 gave (empty result)"
        body = server.bodies[0]
        assert body["system"] == [{"text": "Be kind"}]
        assert body["messages"][0]["content"][1] == {"image": {"format": "png", "source": {"bytes": b64(PNG)}}}
        assert body["toolConfig"] == {
            "tools": [{"toolSpec": {"name": "add", "description": "Adds", "inputSchema": {"json": ADD.parameters}}}]
        }

    @pytest.mark.parametrize(
        ("tools", "choice"), [((ADD,), ToolChoice.none), ((), ToolChoice.auto)], ids=["choice none", "no tools"]
    )
    async def test_earlier_calls_are_told_as_text_when_there_are_no_tools(
        self, model: Bedrock, server: ConverseStreamServer, tools: tuple[ToolSignature, ...], choice: ToolChoice
    ) -> None:
        call = ToolCall(call_id="t1", tool_name="add", arguments={"a": 1})
        messages = (UserInput("Add"), AssistantAnswer("", (call,)), ToolResult("t1", "add", "3"))

        chunks = await collect(model, InferenceRequest(HELLO.model, messages, tools=tools, tool_choice=choice))

        assert text_in(chunks) == "You said: (add answered: 3)"
        assert "toolConfig" not in server.bodies[0]

    @pytest.mark.parametrize(
        "model_id",
        [
            "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
            "arn:aws:bedrock:eu-central-1:123456789012:inference-profile/eu.amazon.nova-pro-v1:0",
        ],
    )
    async def test_model_ids_of_every_form_reach_the_service(
        self, model: Bedrock, server: ConverseStreamServer, model_id: str
    ) -> None:
        await collect(model, InferenceRequest(model_id, HELLO.messages))

        assert converse.model_of(server.requests[0]) == model_id

    async def test_the_connection_is_used_again(self, model: Bedrock, server: ConverseStreamServer) -> None:
        await collect(model)
        await collect(model)

        first, second = server.requests
        assert first.connection == second.connection


class TestSilence:
    async def test_chunks_arrive_one_by_one_and_other_tasks_run_meanwhile(
        self, model: Bedrock, server: ConverseStreamServer
    ) -> None:
        gates = [threading.Event(), threading.Event()]
        server.script(converse.stream(gates[0], *converse.text_block("a "), gates[1], *converse.text_block("b ")))
        received: list[ModelChunk] = []

        async def read() -> None:
            async for chunk in await begin(model):
                received.append(chunk)

        task = asyncio.create_task(read())
        for count, gate in enumerate(gates):
            for _ in range(20):  # a loop that the call blocks would never come this far
                await asyncio.sleep(0.001)
            assert len(received) == count
            gate.set()
            await until(lambda: len(received) > count)  # noqa: B023 - called within this round
        await task

        assert text_in(received) == "a b "

    async def test_a_slow_reader_holds_the_service_back(self, model: Bedrock, server: ConverseStreamServer) -> None:
        sent = threading.Event()
        block = converse.event("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "x" * 1_000_000}})
        server.script(converse.stream(*[block] * 30, sent.set))
        stream = await begin(model)

        await anext(stream)
        await asyncio.sleep(0.2)

        assert not sent.is_set()
        assert len(text_in([chunk async for chunk in stream])) == 29_000_000
        assert sent.is_set()

    @pytest.mark.parametrize("how", ["aclose", "cancel"])
    async def test_leaving_ends_the_request_and_the_thread(
        self, model: Bedrock, server: ConverseStreamServer, how: str
    ) -> None:
        server.script(converse.stream(*converse.text_block("a"), threading.Event()))
        stream = await begin(model)
        await anext(stream)

        if how == "aclose":
            await stream.aclose()
        else:
            task = asyncio.ensure_future(anext(stream))
            await asyncio.sleep(0.02)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

        assert await asyncio.to_thread(server.requests[0].left.wait, 30)

    async def test_leaving_before_the_answer_begins_does_not_wait_for_it(
        self, model: Bedrock, server: ConverseStreamServer
    ) -> None:
        gate = threading.Event()
        server.script(Reply((), headers=converse.EVENT_STREAM, before=gate))
        task = asyncio.ensure_future(anext(model.stream(HELLO)))
        await until(lambda: bool(server.requests))

        task.cancel()
        async with asyncio.timeout(30):
            await asyncio.gather(task, return_exceptions=True)
        gate.set()

        assert task.cancelled()

    async def test_a_stall_ends_the_call(self, aws: None, server: ConverseStreamServer) -> None:
        server.script(converse.begun(*converse.text_block("half"), ending="hang"))
        model = Bedrock(lambda: connect("eu-central-1", stall_timeout=2))
        stream = await begin(model)
        await anext(stream)

        with pytest.raises(ModelError, match="sent nothing"):
            await anext(stream)


class TestFailures:
    async def test_throttling_is_repeated_and_then_an_overload(
        self, model: Bedrock, server: ConverseStreamServer
    ) -> None:
        server.script(*[converse.error(429, "ThrottlingException", "Too many tokens", {"Retry-After": "7"})] * 3)

        with pytest.raises(RateLimited, match="ThrottlingException: Too many tokens") as caught:
            await collect(model)

        assert len(server.requests) == 3
        assert caught.value.upstream_status == 429
        assert caught.value.retry_after == 7

    async def test_a_model_that_is_being_loaded_is_an_overload(
        self, model: Bedrock, server: ConverseStreamServer
    ) -> None:
        server.script(*[converse.error(429, "ModelNotReadyException", "It is being loaded")] * 3)

        with pytest.raises(ModelOverloaded) as caught:
            await collect(model)

        assert type(caught.value) is ModelOverloaded

    async def test_a_passing_failure_is_repeated(self, model: Bedrock, server: ConverseStreamServer) -> None:
        server.script(converse.error(503, "ServiceUnavailableException", "later"))

        assert text_in(await collect(model)) == "You said: Hello you"

    @pytest.mark.parametrize(
        ("name", "message", "error"),
        [
            ("throttlingException", "Too many requests", RateLimited),
            ("serviceUnavailableException", "No capacity", ModelOverloaded),
            ("modelStreamErrorException", "It broke", ModelError),
            ("internalServerException", "It broke", ModelError),
            ("validationException", "Input is too long for requested model.", ContextLengthExceeded),
            ("somethingNewException", "Surprise", ModelError),
        ],
    )
    async def test_an_exception_in_the_stream_is_raised(
        self, model: Bedrock, server: ConverseStreamServer, name: str, message: str, error: type[ModelError]
    ) -> None:
        server.script(converse.begun(*converse.text_block("half"), converse.exception(name, message)))
        stream = await begin(model)

        first = await anext(stream)

        assert first == TextChunk("half")
        with pytest.raises(error) as caught:
            await anext(stream)
        assert type(caught.value) is error
        assert len(server.requests) == 1

    @pytest.mark.parametrize(
        ("status", "code", "message", "error", "match"),
        [
            (403, "AccessDeniedException", "You may not", ModelUnauthorized, "InvokeModelWithResponseStream"),
            (403, "UnrecognizedClientException", "Bad token", ModelUnauthorized, "check the AWS credentials"),
            (403, "SomethingNewException", "Bad", ModelUnauthorized, "check the AWS credentials"),
            (404, "ResourceNotFoundException", "No such model", InvalidRequest, "check the model id and the region"),
            (400, "ValidationException", "The model identifier is invalid", InvalidRequest, "identifier is invalid"),
            (400, "ServiceQuotaExceededException", "Too large for you", InvalidRequest, "Too large for you"),
            (424, "ModelErrorException", "It broke", ModelError, "It broke"),
            (400, "ValidationException", "Input is too long for requested model.", ContextLengthExceeded, "too long"),
            (
                400,
                "ValidationException",
                "The model returned the following errors: prompt is too long: 210000 tokens > 200000 maximum",
                ContextLengthExceeded,
                "too long",
            ),
        ],
    )
    async def test_refusals_are_told_apart(
        self,
        model: Bedrock,
        server: ConverseStreamServer,
        status: int,
        code: str,
        message: str,
        error: type[StintError],
        match: str,
    ) -> None:
        server.script(converse.error(status, code, message))

        with pytest.raises(error, match=match) as caught:
            await collect(model)

        assert type(caught.value) is error
        assert len(server.requests) == 1

    async def test_refused_credentials_are_told_without_what_was_signed(
        self, model: Bedrock, server: ConverseStreamServer
    ) -> None:
        server.script(converse.error(403, "InvalidSignatureException", "... x-amz-security-token:SECRET ..."))

        with pytest.raises(ModelUnauthorized) as caught:
            await collect(model)

        assert "SECRET" not in caught.value.message

    @pytest.mark.parametrize(
        ("message", "code", "param"),
        [
            ("The provided model identifier is invalid.", "model_not_found", "model"),
            ("Invocation of model ID x with on-demand throughput isn't supported.", "invalid_request", "model"),
            ("Value '5.0' at 'inferenceConfig.topP' failed to satisfy constraint", "invalid_request", "top_p"),
            ("The maximum tokens you requested exceeds the model limit of 4096.", "invalid_request", "max_tokens"),
            ("The text field at messages.0 is blank.", "invalid_request", "messages"),
            ("prompt is too long: 210000 tokens > 200000 maximum", "context_length_exceeded", "messages"),
            ("Something else.", "invalid_request", None),
        ],
    )
    async def test_a_refused_request_names_the_field(
        self, model: Bedrock, server: ConverseStreamServer, message: str, code: str, param: str | None
    ) -> None:
        server.script(converse.error(400, "ValidationException", message))

        with pytest.raises(StintError) as caught:
            await collect(model)

        assert (caught.value.code, caught.value.param) == (code, param)

    @pytest.mark.parametrize(
        ("stop", "error"),
        [
            ("model_context_window_exceeded", ContextLengthExceeded),
            ("malformed_model_output", ModelError),
            ("malformed_tool_use", ModelError),
        ],
    )
    async def test_stop_reasons_that_are_failures(
        self, model: Bedrock, server: ConverseStreamServer, stop: str, error: type[ModelError]
    ) -> None:
        server.script(converse.stream(*converse.text_block("a"), stop=stop))

        with pytest.raises(error):
            await collect(model)

    @pytest.mark.parametrize("ending", ["cut", "finish"])
    async def test_a_cut_stream_is_an_error(self, model: Bedrock, server: ConverseStreamServer, ending: str) -> None:
        server.script(converse.begun(*converse.text_block("half"), ending=ending))

        with pytest.raises(ModelError, match="interrupted"):
            await collect(model)

    @pytest.mark.parametrize(
        "damaged",
        [
            converse.event("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "a"}})[:-1] + b"!",
            converse.encode({":event-type": "messageStop", ":message-type": "event"}, b"{broken"),
            converse.event("contentBlockDelta", {"contentBlockIndex": 9, "delta": {"toolUse": {"input": "{}"}}}),
            converse.event("metadata", {"usage": {}}),
        ],
        ids=["checksum", "JSON", "unknown block", "missing field"],
    )
    async def test_a_damaged_event_is_an_error(
        self, model: Bedrock, server: ConverseStreamServer, damaged: bytes
    ) -> None:
        server.script(converse.stream(damaged))

        with pytest.raises(ModelError, match="cannot be read"):
            await collect(model)

    async def test_no_service_at_all_says_what_to_check(self, aws: None, monkeypatch: pytest.MonkeyPatch) -> None:
        with ConverseStreamServer() as gone:
            monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", gone.url)

        with pytest.raises(ModelError, match="Cannot reach Bedrock"):
            await collect(Bedrock(lambda: connect("eu-central-1")))
        assert_no_threads()

    async def test_a_missing_region_says_what_to_set(self, aws: None, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME")
        monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
        monkeypatch.setenv("AWS_CONFIG_FILE", "/nowhere")

        with pytest.raises(ModelError, match="set AWS_DEFAULT_REGION"):
            await collect(Bedrock())
        assert_no_threads()

    async def test_missing_credentials_say_so(self, aws: None, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.delenv(name)
        monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere")

        with pytest.raises(ModelError, match="without AWS credentials"):
            await collect(Bedrock(lambda: connect("eu-central-1")))


class TestParametersThatAModelRefuses:
    async def test_temperature_zero_is_left_out_for_models_that_refuse_it(
        self, model: Bedrock, server: ConverseStreamServer
    ) -> None:
        server.script(converse.error(400, "ValidationException", "`temperature` is deprecated for this model."))

        await collect(model)
        await collect(model)

        configs = [body.get("inferenceConfig") for body in server.bodies]
        assert configs == [{"temperature": 0.0}, {}, {}]

    async def test_top_p_gives_way_to_temperature_for_models_that_take_one(
        self, model: Bedrock, server: ConverseStreamServer
    ) -> None:
        message = "The model returned the following errors: `temperature` and `top_p` cannot both be specified"
        server.script(converse.error(400, "ValidationException", message))
        params = decoding(strategy={"type": "top_p", "temperature": 0.5})

        await collect(model, InferenceRequest("anthropic.claude-9", HELLO.messages, decoding=params))

        assert [body["inferenceConfig"] for body in server.bodies] == [
            {"temperature": 0.5, "topP": 0.95},
            {"temperature": 0.5},
        ]

    async def test_a_temperature_that_was_chosen_is_not_dropped(
        self, model: Bedrock, server: ConverseStreamServer
    ) -> None:
        server.script(converse.error(400, "ValidationException", "`temperature` is deprecated for this model."))
        params = decoding(strategy={"type": "top_p", "temperature": 0.5, "top_p": None})

        with pytest.raises(InvalidRequest, match="deprecated"):
            await collect(model, InferenceRequest("anthropic.claude-9", HELLO.messages, decoding=params))

    async def test_top_k_that_a_model_refuses_is_named(self, model: Bedrock, server: ConverseStreamServer) -> None:
        message = "Malformed input request: #: extraneous key [top_k] is not permitted"
        server.script(converse.error(400, "ValidationException", message))
        params = decoding(strategy={"type": "top_k", "top_k": 5})

        with pytest.raises(InvalidRequest, match="does not support top_k") as caught:
            await collect(model, InferenceRequest("meta.llama3", HELLO.messages, decoding=params))

        assert caught.value.param == "sampling_params"


class TestReasoning:
    async def test_thoughts_and_their_signatures_go_back_as_they_came(
        self, model: Bedrock, server: ConverseStreamServer
    ) -> None:
        server.script(
            converse.stream(
                *converse.thought_block("First ", "this.", signature="c2ln"),
                converse.reasoning({"redactedContent": b64(b"secret")}, block=1),
                converse.reasoning({"redactedContent": b64(b"more")}, block=2),
                *converse.thought_block("Then that.", signature="bmF0dXJl", block=3),
                *converse.tool_block("t1", "add", "{}", block=4),
                stop="tool_use",
            )
        )
        asked = replace(HELLO, model=CLAUDE, tools=(ADD,), reasoning=ReasoningOptions("low"), decoding=Decoding())

        chunks = await collect(model, asked)
        thoughts = [chunk for chunk in chunks if isinstance(chunk, ReasoningChunk)]
        reasoning = Reasoning(
            text="".join(each.text for each in thoughts),
            signature="".join(each.signature for each in thoughts),
            redacted="".join(each.redacted for each in thoughts),
        )
        call = ToolCall(call_id="t1", tool_name="add", arguments={})
        said = AssistantAnswer("", (call,), reasoning)
        await collect(model, replace(asked, messages=(*asked.messages, said, ToolResult("t1", "add", "3"))))

        assert reasoning.text == "First this.Then that."
        *sent, called = server.bodies[1]["messages"][1]["content"]
        assert [block["reasoningContent"] for block in sent] == [
            {"reasoningText": {"text": "First this.", "signature": "c2ln"}},
            {"reasoningText": {"text": "Then that.", "signature": "bmF0dXJl"}},
            {"redactedContent": b64(b"secret")},
            {"redactedContent": b64(b"more")},
        ]
        assert "toolUse" in called

    @pytest.mark.parametrize(
        ("details", "hour"),
        [({}, 0), ({"cacheDetails": [{"ttl": "1h", "inputTokens": 15}, {"ttl": "5m", "inputTokens": 5}]}, 15)],
    )
    async def test_what_a_cache_read_and_wrote_is_a_part_of_the_input(
        self, model: Bedrock, server: ConverseStreamServer, details: dict[str, Any], hour: int
    ) -> None:
        server.script(converse.stream(usage=(5, 7), cacheReadInputTokens=100, cacheWriteInputTokens=20, **details))

        usage = end_of(await collect(model)).usage

        assert usage == Usage(
            input_tokens=125,
            output_tokens=7,
            total_tokens=132,
            cached_tokens=100,
            cache_write_tokens=20,
            cache_write_1h_tokens=hour,
        )

    async def test_an_effort_that_a_model_refuses_is_named(self, model: Bedrock, server: ConverseStreamServer) -> None:
        server.script(converse.error(400, "ValidationException", "thinking.type.adaptive is not supported"))
        asked = replace(HELLO, model="anthropic.claude-next", reasoning=ReasoningOptions("low"), decoding=Decoding())

        with pytest.raises(InvalidRequest, match="does not support this reasoning") as caught:
            await collect(model, asked)

        assert caught.value.param == "reasoning.effort"


class TestStrictTools:
    async def test_a_model_without_strict_tools_is_asked_with_plain_ones(
        self, model: Bedrock, server: ConverseStreamServer
    ) -> None:
        server.script(converse.error(400, "ValidationException", "This model doesn't support strict tool use."))
        asked = replace(HELLO, tools=(replace(ADD, strict=True),))

        await collect(model, asked)
        await collect(model, asked)

        strict = [body["toolConfig"]["tools"][0]["toolSpec"]["strict"] for body in server.bodies]
        assert strict == [True, False, False]


class TestCountTokens:
    async def test_the_service_counts_for_the_model_behind_a_profile(
        self, model: Bedrock, server: ConverseStreamServer
    ) -> None:
        asked = InferenceRequest(f"eu.{CLAUDE}", (SystemText("Be kind"), UserInput("Hello you")), tools=(ADD,))

        assert await model.count_tokens(asked) == 5

    async def test_a_model_that_cannot_count_is_named(self, model: Bedrock, server: ConverseStreamServer) -> None:
        with pytest.raises(NotSupported, match=HELLO.model):
            await model.count_tokens(HELLO)

    async def test_other_failures_are_explained(self, model: Bedrock, server: ConverseStreamServer) -> None:
        server.script(converse.error(403, "AccessDeniedException", "no"))

        with pytest.raises(ModelError, match=r"allow .* bedrock:CountTokens"):
            await model.count_tokens(replace(HELLO, model=CLAUDE))


async def test_what_converse_lacks_is_refused_unasked(model: Bedrock, server: ConverseStreamServer) -> None:
    asked = replace(HELLO, decoding=Decoding(seed=1))

    with pytest.raises(InvalidRequest, match="does not support seed"):
        model.check(asked)
    with pytest.raises(InvalidRequest, match="does not support seed"):
        await collect(model, asked)

    assert server.requests == []


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def decoding(**fields: Any) -> Decoding:
    return SamplingParams.model_validate(fields).to_decoding()
