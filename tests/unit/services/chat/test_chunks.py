from typing import Any

import pytest

from stint.domain.inference import (
    Finished,
    FinishReason,
    ModelChunk,
    ReasoningChunk,
    RefusalChunk,
    TextChunk,
    TokenLogprob,
    ToolCallChunk,
    Usage,
)
from stint.domain.openai.chat import ChatCompletionRequest
from stint.domain.openai.chat_input import CalledFunction, ChatToolCall
from stint.domain.openai.chat_output import ChatCompletionChunk
from stint.services.inference.chat.chunks import Completion
from stint.services.inference.chat.stored_completion_model import chunks_of

USAGE = Usage(input_tokens=5, output_tokens=3, total_tokens=8, cached_tokens=2, reasoning_tokens=1)
STOP = Finished(FinishReason.stop, USAGE)
CALLS = (
    ToolCallChunk(3, call_id="call_1", name="f"),
    ToolCallChunk(3, arguments='{"a":'),
    ToolCallChunk(7, call_id="call_2", name="g", arguments="{}"),
    ToolCallChunk(3, arguments="1}"),
)


def completion(**fields: Any) -> Completion:
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}]} | fields
    return Completion(ChatCompletionRequest.model_validate(body), "chatcmpl_1")


def tell(answer: Completion, *chunks: ModelChunk) -> list[ChatCompletionChunk]:
    return [answer.first_chunk(), *(told for chunk in chunks for told in answer.add_chunk(chunk))]


def deltas(told: list[ChatCompletionChunk]) -> list[dict[str, Any]]:
    return [chunk.choices[0].delta.model_dump() for chunk in told if chunk.choices]


def test_a_text_is_told_in_pieces_and_whole() -> None:
    answer = completion(metadata={"topic": "plums"})

    told = tell(answer, ReasoningChunk("hm"), TextChunk("Hello "), TextChunk(""), TextChunk("you"), STOP)
    whole = answer.whole()

    assert deltas(told) == [
        {"role": "assistant", "content": ""},
        {"reasoning_content": "hm"},
        {"content": "Hello "},
        {"content": "you"},
        {},
    ]
    assert [chunk.choices[0].finish_reason for chunk in told] == [None, None, None, None, "stop"]
    assert {(chunk.id, chunk.created, chunk.model) for chunk in told} == {(whole.id, whole.created, "m")}
    message = whole.choices[0].message
    assert (message.content, message.reasoning_content, message.refusal) == ("Hello you", "hm", None)
    assert (whole.choices[0].finish_reason, whole.metadata) == ("stop", {"topic": "plums"})
    assert {whole.service_tier, *(chunk.service_tier for chunk in told)} == {"default"}
    assert whole.usage
    assert whole.usage.prompt_tokens_details.cached_tokens == 2
    assert whole.usage.completion_tokens_details.reasoning_tokens == 1


@pytest.mark.parametrize(("asked", "served"), [("priority", "default"), ("priority", "priority"), ("auto", "flex")])
def test_the_tier_that_served_is_told_at_the_end(asked: str, served: str) -> None:
    answer = completion(service_tier=asked)

    told = tell(answer, TextChunk("Hello"), Finished(FinishReason.stop, service_tier=served))

    assert [chunk.service_tier for chunk in told] == [asked, asked, served]
    assert answer.whole().service_tier == served


def test_calls_are_told_apart_by_their_places() -> None:
    answer = completion()

    told = tell(answer, *CALLS, Finished(FinishReason.tool_calls))

    pieces = [delta["tool_calls"][0] for delta in deltas(told)[1:-1]]
    assert pieces == [
        {"index": 0, "id": "call_1", "type": "function", "function": {"name": "f", "arguments": ""}},
        {"index": 0, "function": {"arguments": '{"a":'}},
        {"index": 1, "id": "call_2", "type": "function", "function": {"name": "g", "arguments": "{}"}},
        {"index": 0, "function": {"arguments": "1}"}},
    ]
    choice = answer.whole().choices[0]
    assert (choice.message.content, choice.finish_reason) == (None, "tool_calls")
    assert choice.message.tool_calls == [
        ChatToolCall(id="call_1", function=CalledFunction(name="f", arguments='{"a":1}')),
        ChatToolCall(id="call_2", function=CalledFunction(name="g", arguments="{}")),
    ]


def test_one_call_at_once_is_the_first_one() -> None:
    answer = completion(parallel_tool_calls=False)

    tell(answer, *CALLS, Finished(FinishReason.tool_calls))

    [call] = answer.whole().choices[0].message.tool_calls or []
    assert (call.id, call.function.arguments) == ("call_1", '{"a":1}')


def test_a_refusal_is_no_content() -> None:
    answer = completion()

    told = tell(answer, RefusalChunk("I "), RefusalChunk("won't."), STOP)

    assert deltas(told)[1:3] == [{"refusal": "I "}, {"refusal": "won't."}]
    message = answer.whole().choices[0].message
    assert (message.content, message.refusal) == (None, "I won't.")


def test_reasons_of_the_end_have_their_names() -> None:
    told = {reason: tell(completion(), Finished(reason))[-1].choices[0].finish_reason for reason in FinishReason}

    assert told == {reason: reason.value for reason in FinishReason} | {FinishReason.budget: "length"}


def test_who_called_functions_did_not_just_stop() -> None:
    answer = completion()

    tell(answer, CALLS[0], STOP)

    assert answer.whole().choices[0].finish_reason == "tool_calls"


def test_the_usage_comes_last_when_it_is_asked_for() -> None:
    asked = completion(stream=True, stream_options={"include_usage": True})

    told = tell(asked, TextChunk("x"), STOP)

    assert told[-1].choices == []
    assert told[-1].usage
    assert told[-1].usage.total_tokens == 8
    assert [chunk.usage for chunk in told[:-1]] == [None] * 3
    assert all(chunk.usage is None for chunk in tell(completion(), TextChunk("x"), STOP))


def test_a_provider_that_counts_nothing_leaves_the_usage_out() -> None:
    answer = completion(stream=True, stream_options={"include_usage": True})

    told = tell(answer, Finished(FinishReason.stop))

    assert len(told) == 2
    assert answer.whole().usage is None


def test_padding_hides_how_long_a_piece_is_when_it_is_asked_for() -> None:
    asked = completion(stream=True, stream_options={"include_obfuscation": True})

    told = tell(asked, TextChunk("a"), TextChunk("abc"), STOP)

    sizes = [
        len(delta.get("content", "")) + len(chunk.obfuscation or "")
        for chunk, delta in zip(told, deltas(told), strict=True)
    ]
    assert sizes[1] == sizes[2] > 3
    assert told[0].obfuscation is None
    assert all(chunk.obfuscation is None for chunk in tell(completion(), TextChunk("a"), STOP))


def test_a_silent_model_said_nothing() -> None:
    answer = completion()

    tell(answer, STOP)

    assert answer.whole().choices[0].message.content == ""


@pytest.mark.parametrize(
    "chunks",
    [
        (*CALLS, Finished(FinishReason.stop)),
        (RefusalChunk("No."), Finished(FinishReason.content_filter, Usage(input_tokens=1, total_tokens=1))),
        (
            ReasoningChunk("Well."),
            TextChunk("a", (TokenLogprob("a", -0.5, (97,), (TokenLogprob("b", -1.0),)),)),
            TextChunk("b", (TokenLogprob("b", -0.25),)),
            Finished(
                FinishReason.length,
                Usage(input_tokens=1, output_tokens=2, total_tokens=3, cached_tokens=1),
                service_tier="priority",
            ),
        ),
    ],
)
def test_a_stored_answer_is_the_same_completion_again(chunks: tuple[ModelChunk, ...]) -> None:
    first, again = completion(), completion()
    tell(first, *chunks)
    whole = first.whole()

    tell(again, *chunks_of(whole))

    assert again.whole() == whole
