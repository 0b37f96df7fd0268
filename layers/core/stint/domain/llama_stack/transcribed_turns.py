"""Ended turns as the model sees them, and segments of them in compact form."""

from collections.abc import Iterable
from typing import Literal, Self

from pydantic import model_validator

from stint.dataclasses import dataclass, field
from stint.domain.content import Content
from stint.domain.inference import AssistantAnswer, ModelMessage, Reasoning, SystemText, ToolResult, UserInput
from stint.domain.limits import memory_of
from stint.domain.schema import Schema
from stint.domain.tools import ToolCall

TURN_BYTES = 300
"""Memory of a turn besides its messages."""


@dataclass(frozen=True, slots=True)
class TranscribedTurn:
    """A turn as the model sees it. `size` is in bytes of JSON of the stored turn.

    `retry_of` is a failed turn that it repeats, whose input is left out.
    """

    turn_id: str
    size: int
    messages: tuple[ModelMessage, ...]
    retry_of: str = ""
    _memory: int = field(default=0, init=False, repr=False, compare=False)

    @property
    def memory(self) -> int:
        """Return the bytes that it takes in memory. They are counted once."""
        if not self._memory:
            object.__setattr__(self, "_memory", TURN_BYTES + memory_of(self.messages))
        return self._memory


class SegmentMessage(Schema):
    """A message of the model in compact form.

    Exactly one of the first four fields is set. Its name is the kind of the message, and its value the content.
    """

    system: str | None = None
    user: Content | None = None
    answer: str | None = None
    result: Content | None = None
    calls: list[ToolCall] | None = None
    reasoning: Reasoning | None = None
    call_id: str | None = None
    tool: str | None = None
    name: str | None = None

    @model_validator(mode="after")
    def require_one_kind(self) -> Self:
        kinds = (self.system, self.user, self.answer, self.result)
        if sum(kind is not None for kind in kinds) != 1:
            raise ValueError("a message has exactly one of system, user, answer and result")
        if self.result is not None and (self.call_id is None or self.tool is None):
            raise ValueError("a result has call_id and tool")
        return self

    @classmethod
    def of(cls, message: ModelMessage) -> "SegmentMessage":
        match message:
            case UserInput(content, name):
                return cls(user=content, name=name or None)
            case AssistantAnswer(text, calls, reasoning, name):
                return cls(answer=text, calls=list(calls) or None, reasoning=reasoning, name=name or None)
            case ToolResult(call_id, tool_name, content):
                return cls(result=content, call_id=call_id, tool=tool_name)
            case SystemText(text, name):
                return cls(system=text, name=name or None)

    def to_message(self) -> ModelMessage:
        name = self.name or ""
        if self.user is not None:
            return UserInput(self.user, name)
        if self.answer is not None:
            return AssistantAnswer(self.answer, tuple(self.calls or ()), self.reasoning, name)
        if self.result is not None:
            return ToolResult(self.call_id or "", self.tool or "", self.result)
        return SystemText(self.system or "", name)


class SegmentTurn(Schema):
    """A turn of a segment."""

    id: str
    size: int
    messages: list[SegmentMessage]
    retry_of: str | None = None


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
                    messages=list(map(SegmentMessage.of, turn.messages)),
                    retry_of=turn.retry_of or None,
                )
                for turn in turns
            ],
        )

    def to_turns(self) -> list[TranscribedTurn]:
        return [
            TranscribedTurn(
                turn.id, turn.size, tuple(message.to_message() for message in turn.messages), turn.retry_of or ""
            )
            for turn in self.turns
        ]
