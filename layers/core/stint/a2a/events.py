"""The events of a turn as those of a task's stream.

The stream begins with the task, and has then what changes. A live run and a replay of its log give the same events, and
the artifacts of the stream are those that the task has later (`tasks.py`):

    the turn's event        the stream gets
    the first one           the task; or WORKING, if the stream has begun with a task that waited in line
    StepProgress            a piece of the text: the first one begins an artifact
    StepComplete            the last piece of the text, empty, or the whole text if it was not streamed; files of tools
    StepStart               the end of a text that another answer replaces
    TurnAwaitingInput       INPUT_REQUIRED, with what is asked
    the other endings       what is still open is closed; COMPLETED, FAILED, CANCELED or REJECTED

A stream that joins a running turn begins with the finished steps in the task, and leaves out their pieces.
"""

from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing

from stint.a2a.schemas import (
    A2AArtifact,
    A2APart,
    A2ATask,
    A2ATaskStatus,
    ArtifactUpdate,
    StatusUpdate,
    StreamItem,
    TaskState,
)
from stint.a2a.task_ids import TaskPlace
from stint.a2a.tasks import ANSWER, TURN_ID, artifacts_of_step, metadata_of, text_id, to_status, to_task
from stint.domain.llama_stack.events import (
    Event,
    NumberedEvent,
    TurnAwaitingInput,
    TurnComplete,
    TurnFailed,
    TurnStart,
)
from stint.domain.llama_stack.turns import Turn, TurnStatus
from stint.domain.messages import UserMessage
from stint.domain.run_events import StepComplete, StepProgress, StepStart, TextDelta
from stint.domain.schema import now
from stint.domain.steps import CompletionMessage, Step

MakeTask = Callable[[str], A2ATask]
"""Makes the task with which a stream begins, for the id of its turn."""


class TaskEvents:
    """Makes the events of one task, which has the artifacts of the `known_steps` already.

    `turn_id` is empty until the turn starts. A task that is `submitted` is sent before its turn starts.
    """

    def __init__(
        self,
        session_id: str,
        make_task: MakeTask,
        turn_id: str = "",
        known_steps: frozenset[str] = frozenset(),
        *,
        submitted: bool = False,
    ) -> None:
        self.place = TaskPlace(session_id, turn_id)
        self.make_task = make_task
        self.known_steps = known_steps
        self.submitted = submitted
        self.has_begun = False
        self.open_texts: set[str] = set()
        self.sent: set[str] = set()

    async def stream(self, events: AsyncGenerator[NumberedEvent, None]) -> AsyncGenerator[StreamItem, None]:
        """Yield the events of the task for those of its turn."""
        async with aclosing(events):
            async for numbered in events:
                for item in self.convert(numbered.event):
                    yield item

    def convert(self, event: Event) -> Iterator[StreamItem]:
        """Yield the events that an event of the turn becomes: often none."""
        if not self.has_begun:
            yield from self.begin(event)
        match event:
            case StepStart(step_type="inference"):
                yield from self.close_texts()
            case StepProgress(step_type="inference", delta=TextDelta(text=text)) if text:
                yield from self.add_text(event.step_id, text)
            case StepComplete() if event.step_id not in self.known_steps:
                yield from self.complete(event.step_details)
            case TurnComplete() | TurnAwaitingInput() | TurnFailed():
                yield from self.end(event.turn)
            case _:
                return

    def begin(self, event: Event) -> Iterator[StreamItem]:
        """Yield the task, whose turn the first event names unless it is known, or that it runs now."""
        self.has_begun = True
        if self.submitted:
            if isinstance(event, TurnStart):
                yield self.show_working(event.turn_id)
            return
        if not self.place.turn_id:
            turn_id = event.turn_id if isinstance(event, TurnStart) else turn_of(event)
            self.place = TaskPlace(self.place.session_id, turn_id)
        yield StreamItem(task=self.make_task(self.place.turn_id))

    def show_working(self, turn_id: str) -> StreamItem:
        """Return that a task has left the line. Its turn may have another id than the message that waited."""
        update = StatusUpdate(
            task_id=self.place.task_id,
            context_id=self.place.session_id,
            status=A2ATaskStatus(state=TaskState.working, timestamp=now()),
            metadata={TURN_ID: turn_id},
        )
        return StreamItem(status_update=update)

    def add_text(self, step_id: str, text: str) -> Iterator[StreamItem]:
        if step_id in self.known_steps:
            return
        append = step_id in self.open_texts
        self.open_texts.add(step_id)
        yield self.show_artifact(text_piece(step_id, text), append=append)

    def close_texts(self) -> Iterator[StreamItem]:
        """End the texts that are open. Nothing follows."""
        for step_id in sorted(self.open_texts):
            yield self.show_artifact(text_piece(step_id, ""), append=True, last=True)
        self.open_texts.clear()

    def complete(self, step: Step) -> Iterator[StreamItem]:
        """Yield the artifacts of a stored step. A text that was streamed gets its end and its metadata."""
        for artifact in artifacts_of_step(step):
            streamed = step.step_id in self.open_texts and artifact.artifact_id == text_id(step.step_id)
            self.sent.add(artifact.artifact_id)
            if streamed:
                self.open_texts.discard(step.step_id)
                end = artifact.model_copy(update={"parts": [A2APart(text="")]})
                yield self.show_artifact(end, append=True, last=True)
            else:
                yield self.show_artifact(artifact, last=True)

    def end(self, turn: Turn) -> Iterator[StreamItem]:
        """Yield what was not announced yet, and the last status."""
        yield from self.close_texts()
        for step in turn.steps:
            known = step.step_id in self.known_steps
            if not known and any(each.artifact_id not in self.sent for each in artifacts_of_step(step)):
                yield from self.complete(step)
        yield self.show_status(turn)

    def show_status(self, turn: Turn) -> StreamItem:
        update = StatusUpdate(
            task_id=self.place.task_id,
            context_id=self.place.session_id,
            status=to_status(turn),
            metadata=metadata_of(turn),
        )
        return StreamItem(status_update=update)

    def show_artifact(self, artifact: A2AArtifact, *, append: bool = False, last: bool = False) -> StreamItem:
        update = ArtifactUpdate(
            task_id=self.place.task_id,
            context_id=self.place.session_id,
            artifact=artifact,
            append=append,
            last_chunk=last,
        )
        return StreamItem(artifact_update=update)


def text_piece(step_id: str, text: str) -> A2AArtifact:
    return A2AArtifact(artifact_id=text_id(step_id), name=ANSWER, parts=[A2APart(text=text)])


def turn_of(event: Event) -> str:
    """Return the turn of an event that is not its start."""
    if isinstance(event, TurnComplete | TurnAwaitingInput | TurnFailed):
        return event.turn.turn_id
    return event.step_details.turn_id if isinstance(event, StepComplete) else ""


def new_task(session_id: str, messages: Sequence[UserMessage], history_length: int | None) -> MakeTask:
    """Return the function that makes the task of a turn that has just started."""

    def make(turn_id: str) -> A2ATask:
        turn = Turn(
            turn_id=turn_id,
            session_id=session_id,
            input_messages=[*messages],
            steps=[],
            output_message=CompletionMessage(),
            started_at=now(),
            status=TurnStatus.in_progress,
        )
        return to_task(turn, history_length=history_length)

    return make


def resumed_task(turn: Turn, history_length: int | None) -> MakeTask:
    """Return the function that makes the task of a turn that goes on, or that another request has joined."""
    running = turn.model_copy(update={"status": TurnStatus.in_progress, "completed_at": None})

    def make(_turn_id: str) -> A2ATask:
        return to_task(running, history_length=history_length)

    return make


def steps_of(turn: Turn) -> frozenset[str]:
    return frozenset(step.step_id for step in turn.steps)
