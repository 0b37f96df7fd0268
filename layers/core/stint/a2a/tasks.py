"""Turns as tasks.

    the turn                                        the task is
    is a message in line                            SUBMITTED
    runs                                            WORKING
    waits for its client                            INPUT_REQUIRED: its message has what is asked (`answers.py`)
    is complete                                     COMPLETED
    is complete, and a shield has blocked it        REJECTED: its message has the shield's text
    failed                                          FAILED: its message has the error's text
    was cancelled                                   CANCELED

Artifacts are what the turn has put out: the text of each answer of the model, and files of tools. A stream has the
same ones with the same ids (`events.py`).
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from stint.a2a.answers import describe_waiting
from stint.a2a.parts import from_attachment, from_content
from stint.a2a.schemas import A2AArtifact, A2AMessage, A2APart, A2ATask, A2ATaskStatus, TaskState
from stint.a2a.task_ids import TaskPlace
from stint.domain.content import text_of
from stint.domain.llama_stack.stored_turns import attachments_of
from stint.domain.llama_stack.turns import Turn, TurnStatus
from stint.domain.steps import InferenceStep, ShieldCallStep, Step, ToolExecutionStep

STATES = {
    TurnStatus.in_progress: TaskState.working,
    TurnStatus.awaiting_input: TaskState.input_required,
    TurnStatus.completed: TaskState.completed,
    TurnStatus.failed: TaskState.failed,
    TurnStatus.cancelled: TaskState.canceled,
}
USAGE, TURN_ID, ERROR, STOP_REASON, PHASE = (
    "stint/usage",
    "stint/turn_id",
    "stint/error",
    "stint/stop_reason",
    "stint/phase",
)
"""Keys of metadata."""

ANSWER, FILE = "answer", "file"
"""Names of artifacts."""


def to_task(
    turn: Turn, *, submitted: bool = False, history_length: int | None = None, with_artifacts: bool = True
) -> A2ATask:
    """Return a turn as a task. A `submitted` one has not started. `history_length` None means the whole history."""
    place = TaskPlace(turn.session_id, turn.turn_id)
    history = to_history(turn, place)
    kept = history if history_length is None else history[max(len(history) - history_length, 0) :]
    return A2ATask(
        id=place.task_id,
        context_id=place.session_id,
        status=to_status(turn, submitted=submitted),
        artifacts=artifacts_of(turn.steps) or None if with_artifacts else None,
        history=kept or None,
        metadata=metadata_of(turn),
    )


def to_history(turn: Turn, place: TaskPlace) -> list[A2AMessage]:
    """Return the messages of the user, oldest first. What the agent says is in the artifacts and the status."""
    return [
        A2AMessage(
            message_id=f"{turn.turn_id}.{number}",
            context_id=place.session_id,
            task_id=place.task_id,
            role="ROLE_USER",
            parts=from_content(message.content),
        )
        for number, message in enumerate(turn.input_messages)
    ]


def state_of(turn: Turn, *, submitted: bool = False) -> TaskState:
    if submitted and turn.status is TurnStatus.in_progress:
        return TaskState.submitted
    if turn.status is TurnStatus.completed and blocked_text(turn.steps) is not None:
        return TaskState.rejected
    return STATES[turn.status]


def to_status(turn: Turn, *, submitted: bool = False) -> A2ATaskStatus:
    """Return the status of a task, with what its client must know of it."""
    state = state_of(turn, submitted=submitted)
    parts: list[A2APart] = []
    if state is TaskState.input_required:
        parts = describe_waiting(turn)
    elif state is TaskState.rejected:
        parts = [A2APart(text=blocked_text(turn.steps) or "")]
    elif state is TaskState.failed:
        parts = [A2APart(text=turn.error.message if turn.error is not None else "The turn failed.")]
    place = TaskPlace(turn.session_id, turn.turn_id)
    message = A2AMessage(
        message_id=f"{turn.turn_id}.status.{len(turn.steps)}",
        context_id=place.session_id,
        task_id=place.task_id,
        role="ROLE_AGENT",
        parts=parts,
    )
    timestamp = turn.completed_at or last_time(turn)
    return A2ATaskStatus(state=state, message=message if parts else None, timestamp=timestamp)


def last_time(turn: Turn) -> datetime:
    """Return the time of the last change of a turn that has no end."""
    times = [step.completed_at for step in turn.steps if step.completed_at is not None]
    return max([turn.started_at, *times])


def metadata_of(turn: Turn) -> dict[str, Any]:
    """Return what A2A has no field for: the turn's id in the other APIs, its tokens, and how it ended."""
    found: dict[str, Any] = {TURN_ID: turn.turn_id}
    if turn.usage is not None:
        found[USAGE] = turn.usage.model_dump(mode="json")
    if turn.error is not None:
        found[ERROR] = {"code": turn.error.code, "type": turn.error.type}
    if turn.status is TurnStatus.completed:
        found[STOP_REASON] = turn.output_message.stop_reason
    return found


def artifacts_of(steps: Iterable[Step]) -> list[A2AArtifact]:
    return [artifact for step in steps for artifact in artifacts_of_step(step)]


def artifacts_of_step(step: Step) -> list[A2AArtifact]:
    """Return the artifacts of a stored step: often none."""
    if isinstance(step, InferenceStep):
        text = text_of(step.model_response.content)
        return [text_artifact(step, text)] if text else []
    if isinstance(step, ToolExecutionStep):
        return [
            A2AArtifact(artifact_id=f"{step.step_id}.{number}", name=FILE, parts=[from_attachment(attachment)])
            for number, attachment in enumerate(attachments_of([step]), 1)
        ]
    return []


def text_artifact(step: InferenceStep, text: str) -> A2AArtifact:
    """Return the text of an answer. One before calls of tools is a commentary."""
    phase = "commentary" if step.model_response.tool_calls else "final_answer"
    return A2AArtifact(
        artifact_id=text_id(step.step_id), name=ANSWER, parts=[A2APart(text=text)], metadata={PHASE: phase}
    )


def text_id(step_id: str) -> str:
    return f"{step_id}.0"


def blocked_text(steps: Sequence[Step]) -> str | None:
    """Return what the user reads in place of an answer that a shield has blocked; None if none has."""
    last = steps[-1] if steps else None
    if isinstance(last, ShieldCallStep) and last.violation is not None and last.metadata is None:
        return last.violation.user_message or "A shield has blocked the answer."
    return None
