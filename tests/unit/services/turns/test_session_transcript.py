"""A remembered transcript equals that of the whole history, however the history was put together."""

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from stint.domain.ids import new_id
from stint.domain.inference import AssistantAnswer, UserInput
from stint.domain.limits import memory_of
from stint.domain.llama_stack.stored_turns import StoredTurn, TurnHeader, TurnRecord
from stint.domain.llama_stack.transcribed_turns import Segment, TranscribedTurn
from stint.domain.llama_stack.turns import TurnOverrides
from stint.domain.messages import UserMessage
from stint.domain.run_outcome import ErrorInfo, RunOutcome, RunStatus
from stint.domain.steps import (
    CompletionMessage,
    InferenceStep,
    SafetyViolation,
    ShieldCallStep,
    Step,
    ToolExecutionStep,
)
from stint.domain.tools import ToolCall, ToolResponse
from stint.services.turns.history import transcribe
from stint.services.turns.session_transcript import SESSION_BYTES, SessionTranscript, TranscriptCache
from stint.store.sessions import LastTurn
from stint.store.turns import History

NOW = datetime(2026, 1, 1, tzinfo=UTC)
KEY = ("t", "agent", "session")


def answered(turn_id: str, text: str, *calls: str) -> InferenceStep:
    made = [ToolCall(call_id=call, tool_name="t", arguments="{}") for call in calls]
    return InferenceStep(
        turn_id=turn_id,
        step_id=new_id(),
        started_at=NOW,
        completed_at=NOW,
        model_response=CompletionMessage(content=text, tool_calls=made),
    )


def executed(turn_id: str, *calls: str) -> ToolExecutionStep:
    responses = [ToolResponse(call_id=call, tool_name="t", content=f"result of {call}") for call in calls]
    return ToolExecutionStep(
        turn_id=turn_id, step_id=new_id(), started_at=NOW, completed_at=NOW, tool_calls=[], tool_responses=responses
    )


def blocked(turn_id: str) -> ShieldCallStep:
    violation = SafetyViolation(violation_level="error", user_message="No.")
    return ShieldCallStep(turn_id=turn_id, step_id=new_id(), started_at=NOW, completed_at=NOW, violation=violation)


def turn(text: str, *steps: str, status: RunStatus = RunStatus.completed) -> StoredTurn:
    turn_id = new_id()
    header = TurnHeader(
        turn_id=turn_id,
        session_id="s",
        input_messages=[UserMessage(content=text)],
        started_at=NOW,
        overrides=TurnOverrides(),
    )
    made: list[Step] = []
    for place, kind in enumerate(steps):
        call = f"{turn_id[-6:]}-{place - 1}"
        match kind:
            case "answer":
                made.append(answered(turn_id, f"answer to {text}"))
            case "call":
                made.append(answered(turn_id, "", f"{turn_id[-6:]}-{place}"))
            case "result":
                made.append(executed(turn_id, call))
            case "block":
                made.append(blocked(turn_id))
    error = ErrorInfo(type="model_error", code="model_error", message="no") if status is RunStatus.failed else None
    records = [TurnRecord(step=step) for step in made]
    records.append(TurnRecord(ending=RunOutcome(status=status, completed_at=NOW, error=error)))
    return StoredTurn(header, records, size=100 + len(text))


STEPS = st.lists(st.sampled_from(["answer", "call", "result", "block"]), max_size=4)
STATUSES = st.sampled_from([RunStatus.completed, RunStatus.failed, RunStatus.cancelled])
TURNS = st.lists(
    st.builds(lambda text, steps, status: turn(text, *steps, status=status), st.text(max_size=5), STEPS, STATUSES),
    min_size=1,
    max_size=8,
)


def history(turns: list[StoredTurn]) -> History:
    return History(turns, True, LastTurn(turns[-1].header.turn_id, len(turns[-1].records)))


@given(TURNS, st.data())
def test_a_transcript_grows_to_that_of_the_whole_history(turns: list[StoredTurn], data: st.DataObject) -> None:
    grown, at = SessionTranscript(), 0
    while at < len(turns):
        count = data.draw(st.integers(1, len(turns) - at))
        overlap = 1 if at and data.draw(st.booleans()) else 0
        grown = grown.extended(history(turns[at - overlap : at + count]))
        at += count

    whole = SessionTranscript.of(history(turns))
    assert grown.transcript().messages == whole.transcript().messages == transcribe(turns).messages
    assert grown.turns == whole.turns
    assert [one.turn_id for one in grown.turns] == [one.header.turn_id for one in turns[:-1]]
    assert [message for one in grown.turns for message in one.messages] == grown.earlier.messages


@given(TURNS, st.integers(0, 1_000))
def test_a_fitted_transcript_has_newest_turns_that_fill_half_of_the_limit_if_any_do(
    turns: list[StoredTurn], limit: int
) -> None:
    fitted = SessionTranscript.of(history(turns)).fitted(limit)

    kept = turns[len(turns) - fitted.count :]
    assert fitted.count >= 1
    assert fitted.size <= limit or fitted.count == 1
    assert fitted.complete == (fitted.count == len(turns))
    longer = [sum(one.size for one in turns[place:]) for place in range(len(turns) - fitted.count)]
    if 2 * fitted.size < limit:
        assert not any(limit / 2 <= size <= limit for size in longer)
    assert fitted.last is turns[-1]
    assert [one.turn_id for one in fitted.turns] == [one.header.turn_id for one in kept[:-1]]


def test_using_a_transcript_does_not_change_it() -> None:
    kept = SessionTranscript.of(history([turn("a", "answer"), turn("b", "call")]))
    before = list(kept.transcript().messages)

    kept.transcript().close()
    kept.extended(history([turn("c", "block")]))

    assert kept.transcript().messages == before


def test_the_cache_keeps_the_sessions_that_were_used_last_within_its_bytes() -> None:
    kept = SessionTranscript.of(history([turn("a" * 900, "answer")]))
    size = SESSION_BYTES + memory_of(kept.last)
    cache = TranscriptCache(2 * size)
    cache.put(("t", "a", "1"), kept)
    cache.put(("t", "a", "2"), kept)
    assert cache.get(("t", "a", "1")) is kept

    cache.put(("t", "a", "3"), kept)

    assert [cache.get(("t", "a", name)) is kept for name in "123"] == [True, False, True]
    assert cache.bytes == 2 * size


def test_a_transcript_larger_than_the_cache_is_not_kept_and_replaces_none() -> None:
    small, large = (SessionTranscript.of(history([turn("a" * count, "answer")])) for count in (1, 20_000))
    cache = TranscriptCache(20_000)
    cache.put(KEY, small)
    assert cache.get(KEY) is small

    cache.put(KEY, large)

    assert cache.get(KEY) is None
    assert cache.bytes == 0


def test_a_cache_without_bytes_keeps_nothing() -> None:
    cache = TranscriptCache(0)

    cache.put(KEY, SessionTranscript.of(history([turn("a", "answer")])))

    assert cache.get(KEY) is None


def test_a_turn_of_a_segment_leaves_out_the_input_of_the_turn_that_it_repeats() -> None:
    failed, again, newest = turn("Hello", status=RunStatus.failed), turn("Hello", "answer"), turn("more", "answer")
    again.header.retry_of = failed.header.turn_id
    older = [
        TranscribedTurn(failed.header.turn_id, 1, (UserInput("Hello"),)),
        TranscribedTurn(new_id(), 1, (UserInput("between"), AssistantAnswer("Yes"))),
    ]
    repeated = TranscribedTurn(
        again.header.turn_id, 1, (UserInput("Hello"), AssistantAnswer("Hi")), failed.header.turn_id
    )
    written = Segment.of([*older, repeated]).to_json(exclude_none=True)
    segment = Segment.model_validate_json(written).to_turns()

    in_segment = SessionTranscript.of(History([newest], True, None, segment))
    beside_it = SessionTranscript.of(History([again, newest], True, None, older))

    for transcript in (in_segment, beside_it):
        said = [each.content for each in transcript.transcript().messages if isinstance(each, UserInput)]
        assert said == ["between", "Hello", "more"]
