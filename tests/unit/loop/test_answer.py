import pytest

from stint.domain.inference import (
    AnswerDetails,
    Finished,
    FinishReason,
    ModelChunk,
    Reasoning,
    ReasoningChunk,
    RefusalChunk,
    TextChunk,
    ToolCallChunk,
)
from stint.domain.run_events import ReasoningEnded, ReasoningProgress, RefusalDelta, TextDelta, ToolCallDelta
from stint.domain.tools import ToolCall
from stint.loop.answer import Answer

END = Finished(FinishReason.tool_calls)


def answer_of(
    *chunks: ModelChunk,
) -> tuple[Answer, list[TextDelta | ToolCallDelta | ReasoningProgress | ReasoningEnded]]:
    answer = Answer(run_id="t")
    return answer, [delta for chunk in chunks for delta in answer.add_chunk(chunk)]


def call_of(arguments: str) -> ToolCall:
    [call] = answer_of(ToolCallChunk(0, "c0", "add", arguments), END)[0].calls
    return call


def test_the_pieces_of_several_calls_may_come_interleaved() -> None:
    answer, deltas = answer_of(
        ToolCallChunk(1, "c1", "sub", '{"b":'),
        ToolCallChunk(0, "c0", "add"),
        ToolCallChunk(1, arguments=" 2}"),
        ToolCallChunk(0, arguments='{"a": 1}'),
        END,
    )

    assert [(call.call_id, call.tool_name, call.arguments) for call in answer.calls] == [
        ("c0", "add", {"a": 1}),
        ("c1", "sub", {"b": 2}),
    ]
    assert [delta.parse_status for delta in deltas if isinstance(delta, ToolCallDelta)] == ["succeeded", "succeeded"]


@pytest.mark.parametrize("arguments", ["", "  ", "{}"])
def test_no_arguments_are_an_empty_object(arguments: str) -> None:
    assert call_of(arguments).arguments == {}


@pytest.mark.parametrize(
    "arguments",
    ['{"a": ', "[1]", "3", '{"a": NaN}', '{"a": 1e999}', '{"a": "\\ud83d"}', '{"a":' * 300 + "1" + "}" * 300],
    ids=["cut", "array", "number", "nan", "infinite", "half a character", "too deep"],
)
def test_arguments_that_are_no_storable_object_stay_text(arguments: str) -> None:
    answer, [delta] = answer_of(ToolCallChunk(0, "c0", "add", arguments), END)

    assert answer.calls[0].arguments == answer.calls[0].arguments_json == arguments
    assert delta == ToolCallDelta(tool_call=arguments, parse_status="failed")


def test_ids_that_are_missing_or_repeated_are_made_anew() -> None:
    answer, _ = answer_of(*(ToolCallChunk(index, call_id, "add") for index, call_id in enumerate(["c", "c", ""])), END)

    ids = [call.call_id for call in answer.calls]
    assert ids[0] == "c"
    assert len(set(ids)) == 3
    assert all(ids)


@pytest.mark.parametrize("reason", FinishReason)
def test_only_a_cut_answer_is_out_of_tokens(reason: FinishReason) -> None:
    step = answer_of(Finished(reason))[0].to_step()

    assert (step.model_response.stop_reason == "out_of_tokens") == (reason in ("length", "budget"))


def test_reasoning_is_told_piece_by_piece_and_kept_whole_beside_the_step() -> None:
    answer, deltas = answer_of(
        ReasoningChunk("Let me "), ReasoningChunk("see."), ReasoningChunk(signature="s1"), TextChunk("42"), END
    )

    assert [delta.text for delta in deltas if isinstance(delta, ReasoningProgress)] == ["Let me ", "see."]
    reasoning = Reasoning(text="Let me see.", signature="s1")
    assert answer.details() == AnswerDetails(reasoning=reasoning, reasoning_lengths="74")
    assert deltas[2] == ReasoningEnded(answer.step_id, Reasoning(text="Let me see.", signature="s1"))
    assert answer.to_step().model_response.content == "42"


def test_a_refusal_is_text_that_says_so() -> None:
    answer, deltas = answer_of(RefusalChunk("I "), RefusalChunk("cannot."), Finished(FinishReason.stop))

    assert deltas == [RefusalDelta(text="I "), RefusalDelta(text="cannot.")]
    assert answer.details() == AnswerDetails(refusal=True)
    assert answer.to_step().model_response.content == "I cannot."


def test_a_filtered_answer_is_told_and_a_plain_one_has_no_details() -> None:
    assert answer_of(TextChunk("x"), Finished(FinishReason.content_filter))[0].details() == AnswerDetails(filtered=True)
    assert answer_of(TextChunk("x"), Finished(FinishReason.stop))[0].details() is None


def test_only_the_first_calls_count_where_their_number_is_limited() -> None:
    answer = Answer(run_id="t", max_calls=1)

    deltas = [
        delta
        for chunk in (ToolCallChunk(0, "c0", "add", "{}"), ToolCallChunk(1, "c1", "add", "{}"), END)
        for delta in answer.add_chunk(chunk)
    ]

    assert [call.call_id for call in answer.calls] == ["c0"]
    assert len(deltas) == 1
