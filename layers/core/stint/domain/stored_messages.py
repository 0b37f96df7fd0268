"""Messages of the model in a form that is stored, and compactions, which replace older messages."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from stint.domain.content import Content
from stint.domain.fields import is_unset
from stint.domain.inference import AssistantAnswer, ModelMessage, Reasoning, SystemText, ToolResult, UserInput
from stint.domain.schema import Schema
from stint.domain.tools import ToolCall

SUMMARY = "Summary of the conversation so far:"


class StoredMessage(Schema):
    """A message of the model in compact form: exactly one of the first four fields is set, and its name is the kind."""

    system: str | None = None
    """The text of a `SystemText`."""
    user: Content | None = None
    """The content of a `UserInput`."""
    answer: str | None = None
    """The text of an `AssistantAnswer`."""
    result: Content | None = None
    """The content of a `ToolResult`."""
    calls: list[ToolCall] | None = None
    """The calls of an answer."""
    reasoning: Reasoning | None = None
    """The reasoning of an answer."""
    call_id: str | None = None
    """The id of the call of a result."""
    tool: str | None = None
    """The tool of a result."""
    name: str | None = None
    """The participant, of all but results."""

    @model_validator(mode="after")
    def require_one_kind(self) -> Self:
        kinds = (self.system, self.user, self.answer, self.result)
        if sum(kind is not None for kind in kinds) != 1:
            raise ValueError("a message has exactly one of system, user, answer and result")
        if self.result is not None and (self.call_id is None or self.tool is None):
            raise ValueError("a result has call_id and tool")
        return self

    @classmethod
    def of(cls, message: ModelMessage) -> "StoredMessage":
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


class CompactedHistory(Schema):
    """A summary of all messages before a model call, which replaces them.

    `instructions` has the system's messages among them. `messages` follow the summary: those that the model had not
    answered, and the user's messages that led to them. `output_tokens` is the length of the summary.
    """

    summary: str
    instructions: Annotated[list[str], Field(exclude_if=is_unset)] = Field(default_factory=list)
    messages: list[StoredMessage] = Field(default_factory=list)
    output_tokens: Annotated[int, Field(exclude_if=is_unset)] = 0

    @property
    def text(self) -> str:
        """Return the summary as the model sees it."""
        return f"{SUMMARY}\n{self.summary}"
