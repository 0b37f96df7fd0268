"""Responses as they are stored: a header with the request, and an append-only log of records."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from stint.domain.errors import StintError, rename_param
from stint.domain.fields import Metadata, Omitted, is_empty, is_false
from stint.domain.inference import AnswerDetails, Decoding, Usage
from stint.domain.openai.items import Item, OutputItem
from stint.domain.openai.mcp_items import McpListTools
from stint.domain.openai.response_options import Include, ReasoningSettings, TextOptions
from stint.domain.openai.response_tools import ResponseTool, ResponseToolChoice
from stint.domain.schema import Schema
from stint.domain.steps import Step

Truncation = Literal["auto", "disabled"]
ServiceTier = Literal["auto", "default", "flex", "scale", "priority", "fast", "ultrafast"]
CacheRetention = Literal["in_memory", "24h"]
MAX_INFER_ITERS = 100
"""The most model calls of a response. A request may ask for fewer."""

FIELDS = {
    "messages": "input",
    "response_format": "text.format",
    "tools": "tools",
    "max_tokens": "max_output_tokens",
    "max_completion_tokens": "max_output_tokens",
    "verbosity": "text.verbosity",
}
"""What a request for a response calls the fields that a model's provider may refuse."""


class ResponseStatus(StrEnum):
    queued = "queued"
    in_progress = "in_progress"
    completed = "completed"
    incomplete = "incomplete"
    failed = "failed"
    cancelled = "cancelled"


class ResponseError(Schema):
    """Why a response failed, in the words of the API's error body."""

    code: str
    message: str
    type: str = "server_error"
    param: str = ""

    @classmethod
    def of(cls, error: StintError) -> "ResponseError":
        param = rename_param(error.param, FIELDS) or ""
        return cls(code=error.code, message=error.message, type=error.type, param=param)


class ResponseSettings(Schema):
    """What a request asked for, apart from its input: None is the default, so that a plain one takes no room."""

    instructions: Omitted[str] = None
    tools: list[ResponseTool] = Field(default_factory=list)
    tool_choice: Omitted[ResponseToolChoice] = None
    text: Omitted[TextOptions] = None
    reasoning: Omitted[ReasoningSettings] = None
    temperature: Omitted[float] = None
    top_p: Omitted[float] = None
    presence_penalty: Omitted[float] = None
    frequency_penalty: Omitted[float] = None
    parallel_tool_calls: Omitted[bool] = None
    max_output_tokens: Omitted[int] = None
    max_tool_calls: Omitted[int] = None
    max_infer_iters: Omitted[int] = None
    truncation: Omitted[Truncation] = None
    include: list[Include] = Field(default_factory=list)
    metadata: Metadata = Field(default_factory=dict)
    service_tier: Omitted[ServiceTier] = None
    safety_identifier: Omitted[str] = None
    prompt_cache_key: Omitted[str] = None
    prompt_cache_retention: Omitted[CacheRetention] = None
    user: Omitted[str] = None
    store: Omitted[bool] = None
    include_obfuscation: Omitted[bool] = None

    def to_decoding(self) -> Decoding:
        """Give how the model is to choose its tokens."""
        return Decoding(
            temperature=self.temperature,
            top_p=self.top_p,
            max_tokens=self.max_output_tokens,
            frequency_penalty=self.frequency_penalty,
            presence_penalty=self.presence_penalty,
        )


class ResponseHeader(Schema):
    """The first record of a response: written once, before the response is announced, and never rewritten.

    `input` are the request's own items, not those of the responses before it. `depth` counts these; `ancestors` are
    their ids, each in 22 characters, back to and including the last one whose depth is a multiple of 16. `until` is
    the time (seconds since 1970) after which one that does not run in the background, and has no ending, is dead.
    `listed` are the tools of MCP servers as they were listed when the response began. `texts` are those of the files in
    the input, in their order: what the model is shown of them. Of a `streamed` one in the background the events are
    stored as well.
    """

    response_id: str
    created_at: int
    model: str
    settings: ResponseSettings = Field(default_factory=ResponseSettings)
    input: list[Item] = Field(default_factory=list)
    previous_response_id: Omitted[str] = None
    conversation_id: Omitted[str] = None
    ancestors: list[str] = Field(default_factory=list)
    depth: int = 0
    background: bool = False
    streamed: Annotated[bool, Field(exclude_if=is_false)] = False
    until: float = 0.0
    listed: list[McpListTools] = Field(default_factory=list)
    texts: list[str] = Field(default_factory=list)


class ResponseEnding(Schema):
    """How a response ended; nothing follows it. `completed_at` is in seconds, of a completed one only.

    `incomplete_reason` is max_output_tokens, content_filter, max_tool_calls or max_infer_iters. `partial` are the items
    that the stream of a failed or cancelled response announced and no step holds: what had come of an answer that broke
    off. They are shown; no response continues from them.
    """

    status: ResponseStatus
    completed_at: Omitted[int] = None
    usage: Omitted[Usage] = None
    error: Omitted[ResponseError] = None
    incomplete_reason: Omitted[str] = None
    partial: Annotated[list[OutputItem], Field(exclude_if=is_empty)] = Field(default_factory=list)

    @property
    def broke_off(self) -> bool:
        """Tell whether the response ended before its answer did."""
        return self.status in (ResponseStatus.failed, ResponseStatus.cancelled)


class ResponseRecord(Schema):
    """One entry of a response's log: a step with what it does not say itself, an ending, or the last step with it.

    In the background, where another process may go on from a record, it also tells the `usage` up to here, and how many
    places of the output were given to items that broke off before it (`skipped`).
    """

    skipped: Omitted[int] = None
    step: Omitted[Step] = None
    details: Omitted[AnswerDetails] = None
    usage: Omitted[Usage] = None
    ending: Omitted[ResponseEnding] = None


@dataclass(slots=True)
class StoredResponse:
    """A response as the store keeps it. `records` ends with the first ending; `size` is in bytes of JSON.

    `taken_up` tells that a worker has begun to run it in the background, which the log alone does not show.
    """

    header: ResponseHeader
    records: list[ResponseRecord] = field(default_factory=list)
    size: int = 0
    taken_up: bool = False

    @property
    def ending(self) -> ResponseEnding | None:
        return self.records[-1].ending if self.records else None

    @property
    def status(self) -> ResponseStatus:
        """Tell how far the response is; one in the background is queued until a worker takes it up."""
        if self.ending is not None:
            return self.ending.status
        waits = self.header.background and not self.records and not self.taken_up
        return ResponseStatus.queued if waits else ResponseStatus.in_progress

    @property
    def steps(self) -> list[Step]:
        return [record.step for record in self.records if record.step is not None]

    @property
    def usage(self) -> Usage | None:
        """Give the usage up to the last record that tells it."""
        told = [record.ending.usage if record.ending else record.usage for record in self.records]
        return next((usage for usage in reversed(told) if usage is not None), None)
