"""Holding an answer back until the shields have passed it: what they block is in no event.

Without a window, the whole answer is held until it is complete and checked: the first event with text comes after the
last word of the model and the check. With a window, the text is checked in steps while it comes, each time as a whole
from its beginning, and what passed leaves but for its end: the first event comes after `window` characters and a check.
A step is at least a sixteenth of what was checked before, so that all checks together read the answer about 17 times
at the most, however long it is. Tool calls leave with the end of the answer in either case.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace

from stint.domain.inference import AssistantAnswer
from stint.domain.run_events import Delta, TextDelta, ToolCallDelta
from stint.domain.steps import CompletionMessage, InferenceStep
from stint.domain.tools import ToolCall
from stint.loop.screening import Screening
from stint.shields.texts import is_in_word

OVERLAP = 200
"""Characters at the end of a text that passed which stay held: of a forbidden phrase of at most that length, as all
those of deny lists are, nothing leaves before all of it was checked."""

GROWTH = 16

Check = Callable[[AssistantAnswer], Awaitable[Screening]]
"""Checks an answer, or its beginning, in the light of the conversation before it: `screen` with shields."""


@dataclass(slots=True)
class GuardedText:
    """The text of an answer: how much of it was checked, and how much has left."""

    window: int | None
    overlap: int = OVERLAP
    pieces: list[str] = field(default_factory=list)
    length: int = 0
    checked: int = 0
    released: int = 0

    def add(self, piece: str) -> None:
        self.pieces.append(piece)
        self.length += len(piece)

    def whole(self) -> str:
        self.pieces = ["".join(self.pieces)]
        return self.pieces[0]

    def due(self) -> str | None:
        """Give the text that is to be checked before more can leave; None while less than a window is unchecked.

        It does not end inside a word, since none is to be judged by its beginning; one that is longer than `overlap`
        is.
        """
        if self.window is None or self.length - self.checked < max(self.window, self.checked // GROWTH):
            return None
        text = self.whole()
        end = self.length
        while end > self.checked and is_in_word(text[end - 1]):
            end -= 1
        if self.length - end > self.overlap:
            return text
        return text[:end] if end > self.checked else None

    def release(self, checked: int) -> str:
        """Note that the first `checked` characters passed; give what may leave for it."""
        self.checked = checked
        return self.leave(checked - self.overlap)

    def leave(self, end: int) -> str:
        start, self.released = self.released, max(end, self.released)
        return self.whole()[start : self.released]


class OutputGuard:
    """Takes the deltas of one answer, and gives those that may leave.

    Without a check they leave at once. When the shields object, nothing leaves any more: `blocked` is true, and
    `screening` bears the violation. A shield that fails raises ShieldFailed, and nothing leaves either.
    """

    def __init__(self, check: Check | None, window: int | None = None, overlap: int = OVERLAP) -> None:
        """`window` is in characters; None holds back the whole answer."""
        self.screening: Screening | None = None
        self._check = check
        self._text = GuardedText(window, overlap)
        self._calls: list[Delta] = []

    @property
    def blocked(self) -> bool:
        return self.screening is not None and self.screening.violation is not None

    async def take(self, delta: Delta) -> list[Delta]:
        """Take a delta as the model gives it; give what may leave, while the shields are asked if that is due.

        Raises:
            ShieldFailed: a shield gave no judgement.
        """
        if self._check is None:
            return [delta]
        if isinstance(delta, ToolCallDelta):
            self._calls.append(delta)
            return []
        self._text.add(delta.text)
        due = None if self.blocked else self._text.due()
        if due is None or not await self._passes(self._check, AssistantAnswer(due)):
            return []
        return as_deltas(self._text.release(len(due)))

    async def finish(self, calls: Sequence[ToolCall] = ()) -> list[Delta]:
        """Check the complete answer with its tool calls, unless all of it passed before; give the rest of it.

        Raises:
            ShieldFailed: a shield gave no judgement.
        """
        if self._check is None or self.blocked:
            return []
        whole = self._text.whole()
        known = self.screening is not None and self._text.checked == len(whole) and not calls
        if not known and not await self._passes(self._check, AssistantAnswer(whole, tuple(calls))):
            return []
        return [*as_deltas(self._text.leave(len(whole))), *self._calls]

    async def _passes(self, check: Check, answer: AssistantAnswer) -> bool:
        found, earlier = await check(answer), self.screening
        self.screening = replace(found, started_at=earlier.started_at, step_id=earlier.step_id) if earlier else found
        return not self.blocked

    def redact(self, step: InferenceStep) -> InferenceStep:
        """Leave of a blocked answer only what has left already."""
        said = self._text.whole()[: self._text.released]
        return step.model_copy(update={"model_response": CompletionMessage(content=said)})


def as_deltas(text: str) -> list[Delta]:
    return [TextDelta(text=text)] if text else []
