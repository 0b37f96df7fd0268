from collections.abc import Sequence

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
)
from stint.domain.redaction import Redactor
from stint.loop.model_call import ChunkRedactor

KEY = "sk-1234567890"
STOP = Finished(FinishReason.stop)


def play(chunks: Sequence[ModelChunk]) -> list[ModelChunk]:
    redactor = ChunkRedactor(Redactor([KEY]))
    return [told for chunk in chunks for told in redactor.redact_chunk(chunk)]


def text_of(chunks: Sequence[ModelChunk], kind: type[TextChunk | RefusalChunk | ReasoningChunk] = TextChunk) -> str:
    return "".join(chunk.text for chunk in chunks if isinstance(chunk, kind))


@pytest.mark.parametrize("size", range(1, len(KEY) + 2))
@pytest.mark.parametrize("kind", [TextChunk, RefusalChunk, ReasoningChunk])
def test_a_credential_is_redacted_wherever_the_pieces_break(
    size: int, kind: type[TextChunk | RefusalChunk | ReasoningChunk]
) -> None:
    said = f"It is {KEY}, and s"
    pieces = [kind(text=said[at : at + size]) for at in range(0, len(said), size)]

    told = play([*pieces, STOP])

    assert text_of(told, kind) == "It is ***, and s"
    assert told[-1] == STOP


def test_text_without_the_beginning_of_a_credential_passes_piece_by_piece() -> None:
    pieces: list[ModelChunk] = [TextChunk("Hello "), TextChunk("there "), STOP]

    assert play(pieces) == pieces


def test_the_order_of_text_reasoning_and_calls_stays() -> None:
    call = ToolCallChunk(index=0, call_id="c", name="f", arguments=f'{{"k": "{KEY}"}}')

    told = play([ReasoningChunk(text="s"), TextChunk("sk-1"), ReasoningChunk(text="hm"), TextChunk("s"), call, STOP])

    assert told == [ReasoningChunk(text="s"), TextChunk("sk-1"), ReasoningChunk(text="hm"), TextChunk("s"), call, STOP]


def test_reasoning_that_was_changed_has_no_signature() -> None:
    signed, hidden = ReasoningChunk(signature="signed"), ReasoningChunk(redacted="c2VjcmV0")

    kept = play([ReasoningChunk(text="hm s"), signed, hidden, STOP])
    changed = play([ReasoningChunk(text=f"hm {KEY}"), signed, TextChunk("ok"), ReasoningChunk(text="so"), signed, STOP])

    assert kept == [ReasoningChunk(text="hm "), ReasoningChunk(text="s", signature="signed"), hidden, STOP]
    assert [chunk.signature for chunk in changed if isinstance(chunk, ReasoningChunk)] == ["", "", "", "signed"]
    assert text_of(changed, ReasoningChunk) == "hm ***so"


def test_log_probabilities_are_omitted_because_their_tokens_are_the_text() -> None:
    scored = TextChunk("It is s", (TokenLogprob("It is s", -0.5),))

    told = play([scored, STOP])

    assert text_of(told) == "It is s"
    assert all(chunk.logprobs == () for chunk in told if isinstance(chunk, TextChunk))


@pytest.mark.parametrize("kind", [TextChunk, RefusalChunk, ReasoningChunk])
@pytest.mark.parametrize("before", [True, False])
def test_late_signatures_are_dropped_if_anything_was_changed(
    kind: type[TextChunk | RefusalChunk | ReasoningChunk], before: bool
) -> None:
    """They have places in the text."""
    late, said = ReasoningChunk(signature="late", late=True), kind(text=f"It is {KEY}.")

    told = play([late, said, STOP] if before else [said, late, STOP])

    assert told[-1] == STOP
    assert not [chunk for chunk in told if isinstance(chunk, ReasoningChunk) and chunk.late]


def test_late_signatures_are_kept_if_nothing_was_changed() -> None:
    late = ReasoningChunk(signature="late", late=True)

    assert play([TextChunk("a"), late, TextChunk("b"), STOP]) == [TextChunk("a"), TextChunk("b"), late, STOP]


def test_a_late_signature_does_not_split_a_credential() -> None:
    told = play([TextChunk(KEY[:5]), ReasoningChunk(signature="late", late=True), TextChunk(KEY[5:]), STOP])

    assert text_of(told) == "***"
