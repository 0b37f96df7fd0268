"""Checks of the arguments and results of a tool by its own shields. A blocked one becomes an answer for the model.

An input or output shield of an agent ends the turn when it blocks. A shield of a tool only takes the call or the result
away: the model reads why, and can go on without it. So a shield that fails blocks here, too, and a long run is not
lost to one failed check.

    touchpoint     checked                                the shield sees it as
    tool-input     the arguments, before the call runs    the model's words: an answer with this call
    tool-output    the result, before it is stored        the user's words: a result after its call

A result is checked with its structured form, which the model does not read and clients do.
"""

import logging
from collections.abc import Iterator, Sequence
from typing import Any, Literal

from stint.dataclasses import dataclass, field, replace
from stint.domain.content import Content, TextContentItem, items_of
from stint.domain.errors import ShieldFailed, TooLarge
from stint.domain.ids import new_id
from stint.domain.inference import AssistantAnswer, ModelMessage, ToolResult
from stint.domain.schema import now
from stint.domain.steps import SafetyViolation, ShieldCallStep
from stint.domain.tools import ToolCall
from stint.loop.screening import BoundShield, Screening, screen
from stint.shields.port import Touchpoint
from stint.tools.port import ToolOutcome

logger = logging.getLogger(__name__)

ToolTouchpoint = Literal["tool-input", "tool-output"]

SIDES: dict[ToolTouchpoint, Touchpoint] = {"tool-input": "assistant-output", "tool-output": "user-input"}
"""The model writes arguments, and reads results."""

BLOCKED = {
    "tool-input": "A shield blocked the arguments of this call, so the tool did not run.",
    "tool-output": "A shield blocked the result of this call.",
}


@dataclass(slots=True)
class ResultCheck:
    """The check of one result, whose step has the id `step_id`."""

    shields: Sequence[BoundShield]
    call: ToolCall
    step_id: str = field(default_factory=new_id)
    screening: Screening | None = None

    async def inspect(self, outcome: ToolOutcome) -> ToolOutcome:
        """Return an outcome if its shields pass it, else one with a message for the model and nothing of the tool."""
        if not self.shields:
            return outcome
        messages = result_messages(self.call, whole_content(outcome))
        found = await screen_tool(self.shields, messages, "tool-output", describe(self.call))
        # The id was made when the round started, because ids are in the order of the steps.
        self.screening = replace(found, step_id=self.step_id)
        if found.violation is None:
            return outcome
        return ToolOutcome(content=blocked_text(found.violation, "tool-output"), error=True)

    def to_step(self, run_id: str) -> ShieldCallStep | None:
        """Return the step of the check; None if there was none."""
        return None if self.screening is None else self.screening.to_step(run_id)


async def screen_tool(
    shields: Sequence[BoundShield], messages: Sequence[ModelMessage], touchpoint: ToolTouchpoint, names: dict[str, str]
) -> Screening:
    """Check the last messages. A shield that fails blocks them, and the run continues.

    `names` are those of the tool and the call, for the metadata of the step.
    """
    started_at = now()
    side = SIDES[touchpoint]
    try:
        found = await screen(shields, messages, side)
    except (ShieldFailed, TooLarge) as error:
        logger.warning("A shield of a tool failed", extra={"error": error.message, **names})
        metadata = {"violation_type": "shield_failed", "message": error.message}
        violation = SafetyViolation(violation_level="error", metadata=metadata)
        found = Screening(side, started_at, now(), violation)
    return replace(found, metadata={"touchpoint": touchpoint, **names})


def describe(call: ToolCall) -> dict[str, str]:
    """Return the names of a call for the metadata of its checks."""
    return {"tool_name": call.tool_name, "call_id": call.call_id}


def call_messages(call: ToolCall) -> list[ModelMessage]:
    """Return a call as shields see it."""
    return [AssistantAnswer("", (call,))]


def result_messages(call: ToolCall, content: Content) -> list[ModelMessage]:
    """Return a result as shields see it, after its call."""
    return [*call_messages(call), ToolResult(call.call_id, call.tool_name, content)]


def whole_content(outcome: ToolOutcome) -> Content:
    """Return a result with the texts of its structured form, which clients see."""
    texts = "\n".join(texts_in(outcome.metadata.get("structured_content")))
    return [*items_of(outcome.content), TextContentItem(text=texts)] if texts else outcome.content


def texts_in(value: Any) -> Iterator[str]:
    """Yield the keys and values of a JSON value, however deep it is."""
    left = [value]
    while left:
        part = left.pop()
        if isinstance(part, dict):
            left += [each for pair in reversed(part.items()) for each in reversed(pair)]
        elif isinstance(part, list):
            left += reversed(part)
        elif part is not None:
            yield str(part)


def blocked_text(violation: SafetyViolation, touchpoint: ToolTouchpoint) -> str:
    """Return the text that the model gets in place of what was blocked."""
    return " ".join(filter(None, (BLOCKED[touchpoint], violation.user_message)))
