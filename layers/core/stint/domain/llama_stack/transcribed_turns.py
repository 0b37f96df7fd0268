"""Ended turns as the model sees them, and segments of them in compact form."""

from collections.abc import Iterable
from typing import Literal

from stint.dataclasses import dataclass, field
from stint.domain.inference import ModelMessage
from stint.domain.limits import memory_of
from stint.domain.schema import Schema
from stint.domain.stored_messages import StoredMessage

TURN_BYTES = 300
"""Memory of a turn besides its messages."""


@dataclass(frozen=True, slots=True)
class TranscribedTurn:
    """A turn as the model sees it. `size` is in bytes of JSON of the stored turn.

    `retry_of` is a failed turn that it repeats, whose input is left out. The first `compacted` messages are a summary
    of all turns before, which are left out; the size is then that of what follows.
    """

    turn_id: str
    size: int
    messages: tuple[ModelMessage, ...]
    retry_of: str = ""
    compacted: int = 0
    _memory: int = field(default=0, init=False, repr=False, compare=False)

    @property
    def memory(self) -> int:
        """Return the bytes that it takes in memory. They are counted once."""
        if not self._memory:
            object.__setattr__(self, "_memory", TURN_BYTES + memory_of(self.messages))
        return self._memory


class SegmentTurn(Schema):
    """A turn of a segment."""

    id: str
    size: int
    messages: list[StoredMessage]
    retry_of: str | None = None
    compacted: int | None = None


class Segment(Schema):
    """Successive turns of a session, as the model sees them. Processes ignore a segment of another version."""

    version: Literal[1]
    turns: list[SegmentTurn]

    @classmethod
    def of(cls, turns: Iterable[TranscribedTurn]) -> "Segment":
        return cls(
            version=1,
            turns=[
                SegmentTurn(
                    id=turn.turn_id,
                    size=turn.size,
                    messages=list(map(StoredMessage.of, turn.messages)),
                    retry_of=turn.retry_of or None,
                    compacted=turn.compacted or None,
                )
                for turn in turns
            ],
        )

    def to_turns(self) -> list[TranscribedTurn]:
        return [
            TranscribedTurn(
                turn.id,
                turn.size,
                tuple(message.to_message() for message in turn.messages),
                turn.retry_of or "",
                compacted=turn.compacted or 0,
            )
            for turn in self.turns
        ]
