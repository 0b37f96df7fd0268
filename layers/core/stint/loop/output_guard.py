"""Buffering of an answer until the output shields have checked it. No event contains blocked text.

Without a window, the whole answer is buffered until it is complete and checked, so the first text event comes after the
model's last word and the check. With a window, the text so far is checked repeatedly from its beginning, and the
checked text except its end is released, so the first event comes after `window` characters and a check. Each check
covers at least a sixteenth more text than the one before, so that all checks together read an answer at most about 17
times. Tool calls are released at the end of the answer in either case.
"""

from collections.abc import Awaitable, Callable, Sequence

from stint.dataclasses import dataclass, field, replace
from stint.domain.inference import AssistantAnswer
from stint.domain.run_events import Delta, TextDelta, ToolCallDelta
from stint.domain.steps import CompletionMessage, InferenceStep
from stint.domain.tools import ToolCall
from stint.loop.screening import Screening
from stint.shields.texts import is_in_word

OVERLAP = 200
"""Characters at the end of a checked text that stay buffered, so that no part of a forbidden phrase of at most this
length is released before the whole phrase is checked. Phrases of deny lists are not longer."""

GROWTH = 16
"""A check covers at least 1/16 more text than the one before. All checks together then read a multiple of the answer's
length, and not its square."""

Check = Callable[[AssistantAnswer], Awaitable[Screening]]
"""A function that checks an answer, or its beginning, in the context of the conversation: `screen` with shields."""


@dataclass(slots=True)
class GuardedText:
    """The text of an answer, with the lengths of its checked and released parts."""

    window: int | None
    overlap: int = OVERLAP
    pieces: list[str] = field(default_factory=list)
    length: int = 0
    checked: int = 0
    released: int = 0

    def append_text(self, piece: str) -> None:
        self.pieces.append(piece)
        self.length += len(piece)

    def whole(self) -> str:
        self.pieces = ["".join(self.pieces)]
        return self.pieces[0]

    def text_to_check(self) -> str | None:
        """Return the text to check before more is released; None while less than a window is unchecked.

        It does not end inside a word, because a word must not be judged by its beginning, unless the word is longer
        than `overlap`.
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
        """Mark the first `checked` characters as checked, and return the text to release."""
        self.checked = checked
        return self.release_up_to(checked - self.overlap)

    def release_up_to(self, end: int) -> str:
        start, self.released = self.released, max(end, self.released)
        return self.whole()[start : self.released]


class OutputGuard:
    """Receives the deltas of one answer, and returns those that are released.

    Without a check, all are released at once. After a violation nothing is released: `blocked` is true, and `screening`
    has the violation. A failed shield raises ShieldFailed, and nothing is released.
    """

    def __init__(self, check: Check | None, window: int | None = None, overlap: int = OVERLAP) -> None:
        """`window` is in characters; None buffers the whole answer."""
        self.screening: Screening | None = None
        self._check = check
        self._text = GuardedText(window, overlap)
        self._calls: list[Delta] = []

    @property
    def blocked(self) -> bool:
        return self.screening is not None and self.screening.violation is not None

    async def add_delta(self, delta: Delta) -> list[Delta]:
        """Add a delta, run the shields if a check is due, and return the released deltas.

        Raises:
            ShieldFailed: a shield returned no verdict.
        """
        if self._check is None:
            return [delta]
        if isinstance(delta, ToolCallDelta):
            self._calls.append(delta)
            return []
        self._text.append_text(delta.text)
        due = None if self.blocked else self._text.text_to_check()
        if due is None or not await self._passes(self._check, AssistantAnswer(due)):
            return []
        return as_deltas(self._text.release(len(due)))

    async def finish(self, calls: Sequence[ToolCall] = ()) -> list[Delta]:
        """Check the complete answer with its tool calls, unless all of it is checked, and return the rest.

        Raises:
            ShieldFailed: a shield returned no verdict.
        """
        if self._check is None or self.blocked:
            return []
        whole = self._text.whole()
        # Calls have not been checked by any window, so an answer with calls is always checked whole.
        known = self.screening is not None and self._text.checked == len(whole) and not calls
        if not known and not await self._passes(self._check, AssistantAnswer(whole, tuple(calls))):
            return []
        return [*as_deltas(self._text.release_up_to(len(whole))), *self._calls]

    async def _passes(self, check: Check, answer: AssistantAnswer) -> bool:
        found, earlier = await check(answer), self.screening
        # All checks of an answer are one step, which begins with the first and has the last one's verdict.
        self.screening = replace(found, started_at=earlier.started_at, step_id=earlier.step_id) if earlier else found
        return not self.blocked

    def redact(self, step: InferenceStep) -> InferenceStep:
        """Reduce a blocked answer to its released part."""
        said = self._text.whole()[: self._text.released]
        return step.model_copy(update={"model_response": CompletionMessage(content=said)})


def as_deltas(text: str) -> list[Delta]:
    return [TextDelta(text=text)] if text else []
