import math

import pytest

from stint.domain.errors import ModelError
from stint.domain.inference import (
    ModelChunk,
    ReasoningChunk,
    RefusalChunk,
    TextChunk,
    TokenLogprob,
    ToolCallChunk,
)
from stint.domain.limits import MAX_ANSWER_CALLS, MAX_ANSWER_CHARACTERS
from stint.loop.model_call import AnswerLimits

HALF = "a\ud83d"


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        (TextChunk(HALF), TextChunk("a?")),
        (RefusalChunk(HALF), RefusalChunk("a?")),
        (ReasoningChunk(HALF, HALF, HALF), ReasoningChunk("a?", "a?", "a?")),
        (ToolCallChunk(0, "c", HALF, HALF), ToolCallChunk(0, "c", "a?", "a?")),
        (
            TextChunk("ü", (TokenLogprob(HALF, -math.inf, top=(TokenLogprob(HALF, math.nan),)),)),
            TextChunk("ü", (TokenLogprob("a?", -9999.0, top=(TokenLogprob("a?", -9999.0),)),)),
        ),
    ],
)
def test_what_json_cannot_hold_is_replaced(said: ModelChunk, kept: ModelChunk) -> None:
    assert AnswerLimits().admit(said) == kept


@pytest.mark.parametrize("call_id", ["x" * 65, "a\nb", "a\0", "\ud83d", "ü"])
def test_an_id_that_clients_and_tools_could_not_send_is_dropped(call_id: str) -> None:
    assert AnswerLimits().admit(ToolCallChunk(0, call_id, "add")) == ToolCallChunk(0, "", "add")


@pytest.mark.parametrize("call_id", ["functions.add:0", "x" * 64])
def test_another_id_is_kept(call_id: str) -> None:
    assert AnswerLimits().admit(ToolCallChunk(0, call_id)) == ToolCallChunk(0, call_id)


@pytest.mark.parametrize(
    "piece", [TextChunk("a"), RefusalChunk("a"), ReasoningChunk("a"), ToolCallChunk(0, arguments="a")]
)
def test_an_answer_without_end_fails(piece: ModelChunk) -> None:
    limits = AnswerLimits(characters=MAX_ANSWER_CHARACTERS - 1)
    limits.admit(piece)

    with pytest.raises(ModelError, match="more than 10,000,000 characters"):
        limits.admit(piece)


def test_an_answer_with_too_many_calls_fails() -> None:
    limits = AnswerLimits()
    for index in range(MAX_ANSWER_CALLS):
        limits.admit(ToolCallChunk(index, f"c{index}", "add"))
    limits.admit(ToolCallChunk(0, arguments="{}"))

    with pytest.raises(ModelError, match="more than 1,000 tool calls"):
        limits.admit(ToolCallChunk(MAX_ANSWER_CALLS, "c", "add"))
