"""A model call: what goes in, and the closed union of what comes out."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Field

from stint.domain.content import Content
from stint.domain.schema import Request, Schema
from stint.domain.tools import ToolCall, ToolChoice


class GreedySamplingStrategy(Request):
    type: Literal["greedy"] = "greedy"


class TopPSamplingStrategy(Request):
    type: Literal["top_p"] = "top_p"
    temperature: Annotated[float, Field(gt=0)] | None
    top_p: float | None = 0.95


class TopKSamplingStrategy(Request):
    type: Literal["top_k"] = "top_k"
    top_k: int = Field(ge=1)


SamplingStrategy = Annotated[
    GreedySamplingStrategy | TopPSamplingStrategy | TopKSamplingStrategy, Field(discriminator="type")
]


class SamplingParams(Request):
    """How tokens are chosen. `max_tokens` 0 or null leaves the length to the provider."""

    strategy: SamplingStrategy = Field(default_factory=GreedySamplingStrategy)
    max_tokens: int | None = 0
    repetition_penalty: float = 1.0
    stop: list[str] | None = None


class JsonSchemaResponseFormat(Request):
    type: Literal["json_schema"] = "json_schema"
    json_schema: dict[str, Any]


class GrammarResponseFormat(Request):
    type: Literal["grammar"] = "grammar"
    bnf: dict[str, Any]


ResponseFormat = Annotated[JsonSchemaResponseFormat | GrammarResponseFormat, Field(discriminator="type")]


@dataclass(frozen=True, slots=True)
class SystemText:
    """The instructions, as the first message."""

    text: str


@dataclass(frozen=True, slots=True)
class UserInput:
    content: Content


@dataclass(frozen=True, slots=True)
class AssistantAnswer:
    """An earlier answer of the model: text and tool calls, either may be empty."""

    text: str
    tool_calls: tuple[ToolCall, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The answer to one earlier call, bound to it by `call_id`."""

    call_id: str
    tool_name: str
    content: Content


ModelMessage = SystemText | UserInput | AssistantAnswer | ToolResult


@dataclass(frozen=True, slots=True)
class ToolSignature:
    """A tool as the model sees it; `parameters` is a JSON schema of type object."""

    name: str
    description: str
    parameters: dict[str, Any]


@dataclass(frozen=True, slots=True)
class InferenceRequest:
    """One call of a model. `model` is the provider's own id, without the routing prefix."""

    model: str
    messages: tuple[ModelMessage, ...]
    tools: tuple[ToolSignature, ...] = ()
    tool_choice: ToolChoice | str = ToolChoice.auto
    sampling: SamplingParams = field(default_factory=SamplingParams)
    response_format: JsonSchemaResponseFormat | GrammarResponseFormat | None = None


class Usage(Schema):
    """Tokens as the provider counted them, summed over the model calls of a turn."""

    input_tokens: int = 0
    output_tokens: int = 0
    total_tokens: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            total_tokens=self.total_tokens + other.total_tokens,
        )


class FinishReason(StrEnum):
    """Why a model stopped."""

    stop = "stop"
    tool_calls = "tool_calls"
    length = "length"
    content_filter = "content_filter"


@dataclass(frozen=True, slots=True)
class TextChunk:
    text: str


@dataclass(frozen=True, slots=True)
class ToolCallChunk:
    """A piece of a tool call.

    `index` tells the calls of one answer apart. The first piece of a call bears its id and name; the `arguments` of
    all its pieces, joined, are a JSON text.
    """

    index: int
    call_id: str = ""
    name: str = ""
    arguments: str = ""


@dataclass(frozen=True, slots=True)
class Finished:
    """The end of an answer: the last chunk, exactly once. `usage` is None when the provider counts nothing."""

    reason: FinishReason
    usage: Usage | None = None


ModelChunk = TextChunk | ToolCallChunk | Finished
