"""Events of turns as those of tasks, where a whole turn does not show them."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from stint.a2a.events import TaskEvents, new_task, resumed_task, steps_of
from stint.a2a.schemas import StreamItem
from stint.domain.errors import ModelError
from stint.domain.llama_stack.events import Event, TurnComplete, TurnFailed, TurnStart
from stint.domain.llama_stack.turns import Turn, TurnStatus
from stint.domain.messages import UserMessage
from stint.domain.run_events import StepComplete, StepProgress, StepStart, TextDelta
from stint.domain.steps import CompletionMessage, InferenceStep, SafetyViolation, ShieldCallStep, Step

TIME = datetime(2026, 1, 2, tzinfo=UTC)
SESSION, TURN = "01990000-0000-7000-8000-000000000001", "01990000-0000-7000-8000-000000000002"


def answer(name: str, text: str) -> InferenceStep:
    message = CompletionMessage(content=text)
    return InferenceStep(turn_id=TURN, step_id=name, started_at=TIME, completed_at=TIME, model_response=message)


def turn(*steps: Step, status: TurnStatus = TurnStatus.completed) -> Turn:
    return Turn(
        turn_id=TURN,
        session_id=SESSION,
        input_messages=[UserMessage(content="Hi")],
        steps=[*steps],
        output_message=CompletionMessage(),
        started_at=TIME,
        status=status,
    )


def piece(name: str, text: str) -> StepProgress:
    return StepProgress(step_type="inference", step_id=name, delta=TextDelta(text=text))


def complete(step: Step) -> StepComplete:
    return StepComplete(step_type=step.step_type, step_id=step.step_id, step_details=step)


def begin(name: str) -> StepStart:
    return StepStart(step_type="inference", step_id=name)


def convert(events: TaskEvents, *sent: Event) -> list[StreamItem]:
    return [item for event in sent for item in events.convert(event)]


def new_events() -> TaskEvents:
    return TaskEvents(SESSION, new_task(SESSION, [UserMessage(content="Hi")], None))


def texts(items: Iterable[StreamItem]) -> list[tuple[str, str, bool, bool]]:
    """Return the id, the text, `append` and `last_chunk` of each piece of an artifact."""
    updates = [item.artifact_update for item in items if item.artifact_update is not None]
    return [
        (each.artifact.artifact_id, each.artifact.parts[0].text or "", each.append, each.last_chunk) for each in updates
    ]


def last_state(items: list[StreamItem]) -> Any:
    assert items[-1].status_update is not None
    return items[-1].status_update.status.state


def test_a_text_that_another_answer_replaces_is_closed() -> None:
    step = answer("b", "two")

    items = convert(
        new_events(),
        *(TurnStart(turn_id=TURN), begin("a"), piece("a", "on"), begin("b"), piece("b", "two"), complete(step)),
        TurnComplete(turn=turn(step)),
    )

    assert texts(items) == [
        ("a.0", "on", False, False),
        ("a.0", "", True, True),
        ("b.0", "two", False, False),
        ("b.0", "", True, True),
    ]


def test_a_step_that_was_not_announced_is_an_artifact_at_the_end() -> None:
    items = convert(new_events(), TurnStart(turn_id=TURN), TurnComplete(turn=turn(answer("a", "whole"))))

    assert texts(items) == [("a.0", "whole", False, True)]
    assert last_state(items) == "TASK_STATE_COMPLETED"


def test_a_stream_that_joins_leaves_out_what_the_task_has() -> None:
    first, second = answer("a", "one"), answer("b", "two")
    running = turn(first, status=TurnStatus.in_progress)
    events = TaskEvents(SESSION, resumed_task(running, None), TURN, steps_of(running))

    items = convert(
        events,
        *(TurnStart(turn_id=TURN), begin("a"), piece("a", "one"), complete(first)),
        *(begin("b"), piece("b", "two"), complete(second), TurnComplete(turn=turn(first, second))),
    )

    task = items[0].task
    assert task is not None
    assert [artifact.artifact_id for artifact in task.artifacts or ()] == ["a.0"]
    assert texts(items) == [("b.0", "two", False, False), ("b.0", "", True, True)]


def test_a_turn_that_fails_at_once_has_its_task_first() -> None:
    items = convert(new_events(), TurnFailed(ModelError("No."), turn(status=TurnStatus.failed)))

    assert items[0].task is not None
    assert items[0].task.id == f"{TURN}.{SESSION}"
    assert last_state(items) == "TASK_STATE_FAILED"


def test_an_answer_that_a_shield_has_blocked_is_rejected() -> None:
    violation = SafetyViolation(violation_level="error", user_message="Not this.")
    blocked = ShieldCallStep(turn_id=TURN, step_id="s", started_at=TIME, completed_at=TIME, violation=violation)

    items = convert(new_events(), TurnStart(turn_id=TURN), complete(blocked), TurnComplete(turn=turn(blocked)))

    assert last_state(items) == "TASK_STATE_REJECTED"
    update = items[-1].status_update
    assert update is not None
    assert update.status.message is not None
    assert update.status.message.parts[0].text == "Not this."
