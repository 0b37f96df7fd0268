"""The step that a run streams at the moment."""

from stint.domain.inference import Reasoning
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
)
from stint.domain.text_lengths import encode_all_lengths


class Pieces:
    """The pieces that were streamed of a step since its last part was taken."""

    def __init__(self) -> None:
        self.reasoning: list[str] = []
        self.reasoned: Reasoning | None = None
        self.text: list[str] = []
        self.refusal = False
        self.calls: list[ToolCallDelta] = []

    def add_event(self, event: LoopEvent) -> int:
        """Add an event, and return the number of its characters."""
        match event:
            case ReasoningProgress(text=text):
                self.reasoning.append(text)
                return len(text)
            case ReasoningEnded(reasoning=reasoning):
                self.reasoned = reasoning.model_copy(update={"text": ""})
            case StepProgress(delta=TextDelta(text=text) as delta):
                self.refusal = isinstance(delta, RefusalDelta)
                self.text.append(text)
                return len(text)
            case StepProgress(delta=ToolCallDelta() as delta):
                self.calls.append(delta)
        return 0

    def to_part(self, step: PartialStep) -> PartialStep:
        """Return the pieces as a part of a step."""
        return PartialStep(
            step_type=step.step_type,
            step_id=step.step_id,
            metadata=step.metadata,
            reasoning="".join(self.reasoning),
            reasoning_lengths=encode_all_lengths(map(len, self.reasoning)),
            reasoned=self.reasoned,
            text="".join(self.text),
            text_lengths=encode_all_lengths(map(len, self.text)),
            refusal=self.refusal,
            calls=self.calls,
        )


class RunningStep:
    """The streamed beginning of a run's unfinished step. `fresh` is the number of characters since the last `take`."""

    def __init__(self) -> None:
        self.fresh = 0
        self._taken: PartialStep | None = None
        self._pieces = Pieces()

    @property
    def step_id(self) -> str | None:
        """Return the id of the step; None between two steps."""
        return self._taken.step_id if self._taken is not None else None

    def add_event(self, event: LoopEvent) -> None:
        """Add an event of the run."""
        if isinstance(event, StepStart):
            self._taken, self._pieces, self.fresh = PartialStep.begin(event), Pieces(), 0
        elif isinstance(event, StepComplete):
            self._taken = None
        else:
            self.fresh += self._pieces.add_event(event)

    def take(self) -> PartialStep | None:
        """Return the part of the step since the last call; None between two steps."""
        if self._taken is None:
            return None
        part, self._pieces, self.fresh = self._pieces.to_part(self._taken), Pieces(), 0
        self._taken = self._taken.extended(part)
        return part

    def whole(self) -> PartialStep | None:
        """Return the whole step so far; None between two steps."""
        self.take()
        return self._taken
