"""Unfinished steps, so that readers who rejoin a stream get what was streamed of them."""

from typing import Any

from pydantic import Field

from stint.domain.fields import is_unset
from stint.domain.inference import Reasoning
from stint.domain.run_events import StepStart, ToolCallDelta
from stint.domain.schema import Schema
from stint.domain.steps import StepType


class PartialStep(Schema):
    """The streamed beginning of a step, or a part of that: its start, pieces of reasoning, pieces of text, calls."""

    step_type: StepType
    step_id: str
    metadata: dict[str, Any] = Field(default_factory=dict, exclude_if=is_unset)
    reasoning: str = Field(default="", exclude_if=is_unset)
    """The joined pieces of the reasoning."""
    reasoning_lengths: str = Field(default="", exclude_if=is_unset)
    """The lengths of all pieces, in the form of `stint.domain.text_lengths`."""
    reasoned: Reasoning | None = Field(default=None, exclude_if=is_unset)
    """The reasoning with its signature, set when it has ended."""
    text: str = Field(default="", exclude_if=is_unset)
    """The joined pieces of the text."""
    text_lengths: str = Field(default="", exclude_if=is_unset)
    """The lengths of all pieces, in the form of `stint.domain.text_lengths`."""
    refusal: bool = Field(default=False, exclude_if=is_unset)
    """The text is a refusal."""
    calls: list[ToolCallDelta] = Field(default_factory=list, exclude_if=is_unset)

    @classmethod
    def begin(cls, start: StepStart) -> "PartialStep":
        return cls(step_type=start.step_type, step_id=start.step_id, metadata=start.metadata)

    @property
    def is_empty(self) -> bool:
        """Return whether there is nothing after the start of the step."""
        return not (self.reasoning or self.reasoned or self.text or self.calls)

    def without_reasoning(self) -> "PartialStep":
        """Return this part without pieces of reasoning."""
        return self.model_copy(update={"reasoning": "", "reasoning_lengths": "", "reasoned": None})

    def extended(self, later: "PartialStep") -> "PartialStep":
        """Return this part with the one after it."""
        return self.model_copy(
            update={
                "reasoning": self.reasoning + later.reasoning,
                "reasoning_lengths": self.reasoning_lengths + later.reasoning_lengths,
                "reasoned": later.reasoned or self.reasoned,
                "text": self.text + later.text,
                "text_lengths": self.text_lengths + later.text_lengths,
                "refusal": self.refusal or later.refusal,
                "calls": [*self.calls, *later.calls],
            }
        )
