import pytest

from stint.domain.ids import new_id
from stint.domain.inference import Usage
from stint.domain.llama_stack.stored_turns import (
    StoredTurn,
    TurnHeader,
    TurnRecord,
    output_message_of,
    unanswered_calls,
)
from stint.domain.llama_stack.turns import TurnOverrides, TurnStatus
from stint.domain.run_outcome import RunOutcome, RunStatus
from stint.domain.schema import now
from stint.domain.steps import CompletionMessage, InferenceStep, Step, StopReason, ToolExecutionStep
from stint.domain.tools import ToolCall, ToolResponse


def call(call_id: str) -> ToolCall:
    return ToolCall(call_id=call_id, tool_name="w", arguments={})


def inference(content: str = "", *call_ids: str, stop_reason: StopReason = "end_of_turn") -> InferenceStep:
    message = CompletionMessage(content=content, tool_calls=[call(each) for each in call_ids], stop_reason=stop_reason)
    return InferenceStep(turn_id="t", step_id=new_id(), started_at=now(), model_response=message)


def execution(*call_ids: str) -> ToolExecutionStep:
    responses = [ToolResponse(call_id=each, tool_name="w", content="x") for each in call_ids]
    return ToolExecutionStep(
        turn_id="t",
        step_id=new_id(),
        started_at=now(),
        tool_calls=[call(each) for each in call_ids],
        tool_responses=responses,
    )


def test_a_turn_that_waits_shows_the_calls_that_nobody_answered() -> None:
    steps: list[Step] = [inference("", "a"), execution("a"), inference("Look.", "b", "c"), execution("b")]

    message = output_message_of(steps, RunStatus.awaiting_input)

    assert [each.call_id for each in unanswered_calls(steps)] == ["c"]
    assert (message.content, message.stop_reason) == ("Look.", "end_of_message")
    assert [each.call_id for each in message.tool_calls] == ["c"]


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (inference("Done."), ("Done.", "end_of_turn")),
        (inference("Exhausted.", "a"), ("Exhausted.", "end_of_turn")),
        (inference("Cut", "a", stop_reason="out_of_tokens"), ("Cut", "out_of_tokens")),
    ],
)
def test_a_completed_turn_asks_for_nothing(step: Step, expected: tuple[str, str]) -> None:
    message = output_message_of([step], RunStatus.completed)

    assert (message.content, message.stop_reason) == expected
    assert message.tool_calls == []


@pytest.mark.parametrize("status", [RunStatus.in_progress, RunStatus.failed, RunStatus.cancelled])
def test_a_turn_without_an_answer_has_an_empty_one(status: RunStatus) -> None:
    assert output_message_of([inference("Half", "a")], status) == CompletionMessage()
    assert output_message_of([], RunStatus.completed) == CompletionMessage()


USAGE = Usage(input_tokens=1, output_tokens=1, total_tokens=2)


def ending(status: RunStatus, usage: Usage | None = None) -> RunOutcome:
    return RunOutcome(status=status, completed_at=now(), usage=usage)


def stored(*records: TurnRecord) -> StoredTurn:
    return StoredTurn(HEADER, list(records))


HEADER = TurnHeader(turn_id="t", session_id="s", input_messages=[], started_at=now(), overrides=TurnOverrides())
FENCE = TurnRecord()
COMPLETE = TurnRecord(step=inference("CALL w"), ending=ending(RunStatus.completed, USAGE))
RESULT = TurnRecord(step=execution("a"))


def test_a_fence_changes_nothing_of_a_complete_turn() -> None:
    assert stored(COMPLETE, FENCE, FENCE).to_turn() == stored(COMPLETE).to_turn()
    assert stored(FENCE).status is RunStatus.in_progress


@pytest.mark.parametrize("status", [RunStatus.in_progress, RunStatus.failed, RunStatus.cancelled])
def test_a_resumed_complete_turn_keeps_its_answer_and_usage(
    status: RunStatus,
) -> None:
    """It keeps them until it ends again."""
    more = [RESULT, TurnRecord(step=inference("Half", "b"))]
    last = [] if status is RunStatus.in_progress else [TurnRecord(ending=ending(status))]

    turn = stored(COMPLETE, FENCE, *more, *last).to_turn()

    assert turn.status is TurnStatus(status)
    assert (turn.output_message.content, turn.output_message.tool_calls, turn.usage) == ("CALL w", [], USAGE)
    assert (turn.completed_at is None) == (status is RunStatus.in_progress)


def test_a_turn_that_is_complete_again_shows_its_last_answer() -> None:
    done = TurnRecord(step=inference("Done."), ending=ending(RunStatus.completed))

    assert stored(COMPLETE, RESULT, done).to_turn().output_message.content == "Done."
