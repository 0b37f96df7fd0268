from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.chat import ChatCompletion as OpenAICompletion
from openai.types.chat import ChatCompletionChunk as OpenAIChunk
from openai.types.chat import completion_create_params
from pydantic import ValidationError
from tests.unit.domain.openai.request_bodies import IMAGE, JSON, Json, bodies_near, check_refusal

from stint.domain.fields import SupportedValues, UnsupportedField
from stint.domain.inference import Usage
from stint.domain.openai.chat import ChatCompletionRequest
from stint.domain.openai.chat_input import CalledFunction, ChatToolCall
from stint.domain.openai.chat_output import (
    ChatAnswer,
    ChatChoice,
    ChatCompletion,
    ChatCompletionChunk,
    ChatDelta,
    ChunkChoice,
    CompletionUsage,
    FunctionDelta,
    ToolCallPiece,
)

SCHEMA = {"type": "object", "properties": {"day": {"type": "string"}}}
CALL = {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": "{}"}}
MESSAGES: list[Json] = [
    {"role": "system", "content": "Be brief."},
    {"role": "developer", "content": [{"type": "text", "text": "Be kind."}]},
    {"role": "user", "content": "Hi.", "name": "Ann"},
    {"role": "user", "content": [{"type": "image_url", "image_url": {"url": IMAGE, "detail": "low"}}]},
    {"role": "user", "content": [{"type": "file", "file": {"filename": "a.txt", "file_data": "SGk="}}]},
    {"role": "assistant", "content": None, "tool_calls": [CALL], "audio": None, "refusal": None},
    {"role": "tool", "tool_call_id": "call_1", "content": "4"},
    {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]},
]
FULL: Json = {
    "model": "scripted/demo",
    "messages": MESSAGES,
    "stream": True,
    "stream_options": {"include_usage": True, "include_obfuscation": False},
    "temperature": 0,
    "top_p": 0.5,
    "frequency_penalty": 1,
    "presence_penalty": -1,
    "max_tokens": 9,
    "max_completion_tokens": 10,
    "stop": "END",
    "seed": 7,
    "tools": [{"type": "function", "function": {"name": "get_weather", "parameters": SCHEMA, "strict": True}}],
    "tool_choice": {"type": "function", "function": {"name": "get_weather"}},
    "parallel_tool_calls": False,
    "response_format": {"type": "json_schema", "json_schema": {"name": "day", "schema": SCHEMA, "strict": True}},
    "reasoning_effort": "low",
    "metadata": {"topic": "cats"},
    "service_tier": "auto",
    "safety_identifier": "u",
    "prompt_cache_key": "k",
    "prompt_cache_retention": "in_memory",
    "prompt_cache_options": {"mode": "explicit", "ttl": "12h"},
    "user": "u",
    "n": 1,
    "verbosity": "high",
    "modalities": ["text"],
    "logprobs": False,
    "top_logprobs": 0,
    "logit_bias": {},
    "store": False,
}


def problems_of(**fields: Any) -> list[str]:
    with pytest.raises(ValidationError) as caught:
        ChatCompletionRequest.model_validate({"model": "m", "messages": MESSAGES} | fields)
    return [".".join(str(each) for each in problem["loc"]) for problem in caught.value.errors()]


def test_a_request_with_every_field_is_read() -> None:
    asked = ChatCompletionRequest.model_validate(FULL)

    decoding = asked.to_decoding()

    assert (decoding.temperature, decoding.top_p, decoding.max_tokens, decoding.seed) == (0, 0.5, 10, 7)
    assert (decoding.frequency_penalty, decoding.presence_penalty, decoding.stop) == (1, -1, ("END",))
    assert [message.role for message in asked.messages] == [message["role"] for message in MESSAGES]


def test_nulls_stand_for_defaults() -> None:
    nulls = dict.fromkeys(ChatCompletionRequest.model_fields, None) | {"model": "m", "messages": MESSAGES}

    assert ChatCompletionRequest.model_validate(nulls) == ChatCompletionRequest.model_validate(
        {"model": "m", "messages": MESSAGES}
    )


@pytest.mark.parametrize("name", sorted(completion_create_params.CompletionCreateParamsBase.__annotations__))
def test_each_field_of_the_openai_client_is_honoured_or_refused_by_its_name(name: str) -> None:
    field = ChatCompletionRequest.model_fields[name]
    if any(isinstance(each, UnsupportedField) for each in field.metadata):
        assert problems_of(**{name: {"any": "thing"}}) == [name]
    elif any(isinstance(each, SupportedValues) for each in field.metadata):
        other = {"n": 2, "modalities": ["audio"], "logit_bias": {"5": 1}, "top_logprobs": 1}
        assert problems_of(**{name: other.get(name, True)}) == [name]
    else:
        assert name in FULL


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "function", "name": "f", "content": "4"}]}, "messages.0"),
        ({"messages": [{"content": "Hi."}]}, "messages.0"),
        ({"messages": [{"role": "user", "content": "Hi.", "name": "A" * 257}]}, "messages.0.user.name"),
        ({"verbosity": "chatty"}, "verbosity"),
        ({"messages": [{"role": "user", "content": [{"type": "input_audio"}]}]}, "messages.0.user.content.0"),
        ({"messages": [{"role": "tool", "content": "4"}]}, "messages.0.tool.tool_call_id"),
        (
            {"messages": [{"role": "user", "content": [{"type": "file", "file": {"file_id": "f", "file_data": "a"}}]}]},
            "messages.0.user.content.0.file.file",
        ),
        (
            {"messages": [{"role": "assistant", "tool_calls": [{"id": "a", "type": "custom", "custom": {}}]}]},
            "messages.0.assistant.tool_calls.0",
        ),
        ({"messages": [{"role": "assistant", "audio": {"id": "a"}}]}, "messages.0.assistant.audio"),
        ({"tools": [{"type": "custom", "custom": {"name": "x"}}]}, "tools.0"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tool_choice": {"type": "function", "function": {"name": "f"}}}, "tool_choice"),
        ({"tool_choice": {"type": "custom", "custom": {"name": "f"}}}, "tool_choice"),
        ({"response_format": {"type": "yaml"}}, "response_format"),
        ({"stop": ["a", "b", "c", "d", "e"]}, "stop"),
        ({"temperature": 3}, "temperature"),
        ({"presence_penalty": 3}, "presence_penalty"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"stream_options": {"other": 1}}, "stream_options.other"),
    ],
)
def test_what_cannot_be_done_is_refused_by_its_field(fields: Json, field: str) -> None:
    assert problems_of(**fields) == [field]


@given(
    body=JSON | bodies_near(FULL),
    messages=st.lists(st.sampled_from(MESSAGES).flatmap(bodies_near), min_size=1, max_size=2),
)
def test_any_body_is_read_or_refused_by_a_field(body: Any, messages: list[Json]) -> None:
    check_refusal(ChatCompletionRequest, body)
    check_refusal(ChatCompletionRequest, {"model": "m", "messages": messages})


def test_an_answer_is_what_the_openai_client_knows() -> None:
    call = ChatToolCall(id="call_1", function=CalledFunction(name="f", arguments="{}"))
    usage = CompletionUsage.of(
        Usage(input_tokens=3, output_tokens=2, total_tokens=5, cached_tokens=1, cache_write_tokens=2)
    )
    answers = [
        ChatChoice(message=ChatAnswer(content="Hi."), finish_reason="stop"),
        ChatChoice(message=ChatAnswer(tool_calls=[call]), finish_reason="tool_calls"),
    ]

    for choice in answers:
        answer = ChatCompletion(id="chatcmpl-1", created=1, model="m", choices=[choice], usage=usage)
        read = OpenAICompletion.model_validate(answer.model_dump(mode="json"))
        assert read.usage is not None
        assert (read.usage.prompt_tokens, read.usage.completion_tokens) == (3, 2)
        details = read.usage.prompt_tokens_details
        assert details is not None
        assert (details.cached_tokens, details.cache_write_tokens) == (1, 2)
    assert "tool_calls" not in answers[0].model_dump(mode="json")["message"]


def test_a_chunk_is_what_the_openai_client_knows() -> None:
    piece = ToolCallPiece(index=0, id="call_1", type="function", function=FunctionDelta(name="f", arguments=""))
    deltas = [ChatDelta(role="assistant", content=""), ChatDelta(tool_calls=[piece]), ChatDelta()]

    for delta in deltas:
        chunk = ChatCompletionChunk(id="chatcmpl-1", created=1, model="m", choices=[ChunkChoice(delta=delta)])
        shown = chunk.model_dump(mode="json")
        OpenAIChunk.model_validate(shown)
        assert "usage" not in shown
    assert deltas[2].model_dump(mode="json") == {}
