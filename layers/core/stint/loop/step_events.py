"""The events of stored steps, as the loop emitted them while the steps ran."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

from stint.domain.content import text_of
from stint.domain.inference import AnswerDetails
from stint.domain.partial_steps import PartialStep
from stint.domain.run_events import (
    LoopEvent,
    ReasoningEnded,
    ReasoningProgress,
    RefusalDelta,
    StepComplete,
    StepProgress,
    StepStart,
    TextDelta,
    ToolCallDelta,
    call_delta,
    image_events,
)
from stint.domain.steps import InferenceStep, ShieldCallStep, Step, ToolExecutionStep
from stint.domain.text_lengths import cut_text


class StepReplay:
    """Makes the events of a run's steps, one step after the other."""

    def __init__(self) -> None:
        self.step_id = ""
        self.emitted = 0
        self.after_answer = False

    def emit_step(self, step: Step, details: AnswerDetails | None = None) -> Iterator[LoopEvent]:
        """Yield the events of a step that is complete, without those that `emit_partial` has yielded of it."""
        self.begin(step.step_id)
        yield from islice(self.step_events(step, details), self.emitted, None)
        yield StepComplete(step_type=step.step_type, step_id=step.step_id, step_details=step)
        self.after_answer = isinstance(step, InferenceStep)

    def emit_partial(self, partial: PartialStep) -> Iterator[LoopEvent]:
        """Yield the events of an unfinished step that have not been yielded yet."""
        self.begin(partial.step_id)
        for event in islice(partial_events(partial), self.emitted, None):
            self.emitted += 1
            yield event

    def begin(self, step_id: str) -> None:
        """Yield the events of a step from now on."""
        if self.step_id != step_id:
            self.step_id, self.emitted = step_id, 0

    def step_events(self, step: Step, details: AnswerDetails | None) -> Iterator[LoopEvent]:
        metadata: dict[str, Any] = {}
        if isinstance(step, ShieldCallStep):
            touchpoint = "assistant-output" if self.after_answer else "user-input"
            metadata = {**(step.metadata or {"touchpoint": touchpoint})}
        yield StepStart(step_type=step.step_type, step_id=step.step_id, metadata=metadata)
        if isinstance(step, InferenceStep):
            yield from answer_events(step, details or AnswerDetails())
        elif isinstance(step, ToolExecutionStep):
            for call in step.tool_calls:
                delta = ToolCallDelta(tool_call=call, parse_status="in_progress")
                yield StepProgress(step_type=step.step_type, step_id=step.step_id, delta=delta)
            yield from image_events(step)


def answer_events(step: InferenceStep, details: AnswerDetails) -> Iterator[LoopEvent]:
    """Yield the events of an answer: reasoning, text and calls, cut as they were streamed."""
    if details.reasoning is not None and (shown := details.reasoning.shown) is not None:
        for piece in cut_text(shown.text, details.reasoning_lengths):
            yield ReasoningProgress(step.step_id, piece)
        yield ReasoningEnded(step.step_id, shown)
    answer, delta_of = step.model_response, RefusalDelta if details.refusal else TextDelta
    for piece in cut_text(text_of(answer.content), details.text_lengths):
        yield StepProgress(step_type="inference", step_id=step.step_id, delta=delta_of(text=piece))
    for call in answer.tool_calls:
        yield StepProgress(step_type="inference", step_id=step.step_id, delta=call_delta(call))


def partial_events(partial: PartialStep) -> Iterator[LoopEvent]:
    """Yield the events of an unfinished step so far."""
    kind, step_id = partial.step_type, partial.step_id
    yield StepStart(step_type=kind, step_id=step_id, metadata=partial.metadata)
    for piece in cut_text(partial.reasoning, partial.reasoning_lengths):
        yield ReasoningProgress(step_id, piece)
    if partial.reasoned is not None:
        yield ReasoningEnded(step_id, partial.reasoned.model_copy(update={"text": partial.reasoning}))
    delta_of = RefusalDelta if partial.refusal else TextDelta
    for piece in cut_text(partial.text, partial.text_lengths):
        yield StepProgress(step_type=kind, step_id=step_id, delta=delta_of(text=piece))
    for call in partial.calls:
        yield StepProgress(step_type=kind, step_id=step_id, delta=call)
