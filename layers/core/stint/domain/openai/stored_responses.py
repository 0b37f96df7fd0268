"""Stored responses: a header with the request, and an append-only log of records.

A response has no record with its state. Its status is derived from the log, so that a step and the status that it
implies are one write:

    the log                                            status
    no record, in the background, no worker began      queued
    no ending                                          in_progress; a foreground response whose lease has lapsed is
                                                       interrupted (`has_lapsed`)
    an ending, which is the last record                that of the ending

Each record pays for its bytes, so fields with a default value are omitted. A foreground response lives as long as its
request, and only its ending has usage and consumption. A background response may go on in another process after any
record, so each record has them.
"""

import time
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from stint.dataclasses import dataclass, field
from stint.domain.context_management import ContextManagements
from stint.domain.errors import StintError, rename_param
from stint.domain.fields import Metadata, Omitted, is_unset
from stint.domain.inference import (
    DEFAULT_TIER,
    AnswerDetails,
    Decoding,
    PromptCache,
    ReasoningSettings,
    ServiceTier,
    Usage,
    to_tier,
)
from stint.domain.openai.conversations import StoredItem
from stint.domain.openai.items import Item, OutputItem
from stint.domain.openai.mcp_items import McpListTools
from stint.domain.openai.prompt_cache import CacheOptionsHint, CacheRetention, choose_cache
from stint.domain.openai.response_options import Include, TextOptions
from stint.domain.openai.response_tools import ResponseTool, ResponseToolChoice
from stint.domain.partial_steps import PartialStep
from stint.domain.principals import Principal
from stint.domain.receipts import Consumption
from stint.domain.schema import Request, Schema, Timestamp
from stint.domain.steps import InferenceStep, Step, ToolExecutionStep, without_images
from stint.domain.stops import stop_name
from stint.domain.stored_messages import CompactedHistory

Truncation = Literal["auto", "disabled"]
CompletionWindow = Literal["soonest", "2h", "8h"]

FIELDS = {
    "messages": "input",
    "response_format": "text.format",
    "tools": "tools",
    "max_tokens": "max_output_tokens",
    "max_completion_tokens": "max_output_tokens",
    "verbosity": "text.verbosity",
}
"""The Responses API's names of the fields that a model's provider may refuse."""


class ResponseStatus(StrEnum):
    queued = "queued"
    """In the background, and no worker has started it."""
    in_progress = "in_progress"
    """It has no ending yet."""
    completed = "completed"
    """The answer is complete."""
    incomplete = "incomplete"
    """A limit or a filter cut the answer short."""
    failed = "failed"
    """It ended with an error."""
    cancelled = "cancelled"
    """A client or an admin ended it."""


RUNNING = (ResponseStatus.queued, ResponseStatus.in_progress)


class ResponseError(Schema):
    """The reason why a response failed, as in the API's error body."""

    code: str
    message: str
    type: str = "server_error"
    param: str = ""

    @classmethod
    def of(cls, error: StintError) -> "ResponseError":
        param = rename_param(error.param, FIELDS) or ""
        return cls(code=error.code, message=error.message, type=error.type, param=param)

    def to_error(self) -> StintError:
        """Return the error again, with a code and type of its own."""
        error = StintError(self.message, code=self.code, param=self.param or None)
        error.type = self.type
        return error


class BackgroundOptions(Request):
    """Options of a background response: how soon it is to be complete."""

    model_config = ConfigDict(extra="forbid")

    completion_window: Omitted[CompletionWindow] = None

    @property
    def can_wait(self) -> bool:
        """Return whether a tier that is cheaper and slower may serve the response."""
        return self.completion_window not in (None, "soonest")

    def find_conflict(self, tier: ServiceTier | None, *, background: bool) -> str | None:
        """Return why a response cannot have these options beside others; None if it can."""
        if self.can_wait and not background:
            return "Only a background response can wait. Set background to true, or completion_window to soonest."
        if self.can_wait and tier not in (None, "auto", "flex"):
            return "A response that can wait runs as service_tier flex. Remove service_tier, or background_options."
        return None


def tier_of(asked: ServiceTier | None, background: BackgroundOptions | None = None) -> str | None:
    """Return the service tier of a model call; None leaves it to the provider."""
    return "flex" if background is not None and background.can_wait else to_tier(asked)


class ResponseSettings(Schema):
    """The settings of a request, without its input. None is the default, so that a plain request needs no space.

    Fields without a text are those of the API.
    """

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
    """Maximum model calls; Llama Stack's extension."""
    truncation: Omitted[Truncation] = None
    context_management: Omitted[ContextManagements] = None
    include: list[Include] = Field(default_factory=list)
    metadata: Metadata = Field(default_factory=dict)
    service_tier: Omitted[ServiceTier] = None
    background_options: Omitted[BackgroundOptions] = None
    safety_identifier: Omitted[str] = None
    prompt_cache_key: Omitted[str] = None
    prompt_cache_retention: CacheRetention = None
    prompt_cache_options: CacheOptionsHint = None
    user: Omitted[str] = None
    store: Omitted[bool] = None
    is_single: Omitted[bool] = None
    """No other model call will begin with the input, so caching it by default would be wasted."""
    include_obfuscation: Omitted[bool] = None
    container_id: Omitted[str] = None
    """The container which code goes on with, or which has files of the input."""

    @property
    def fields(self) -> Mapping[str, str]:
        """Return the API's names of the fields that a provider may refuse: `FIELDS`, and the one that sets the tier."""
        waits = self.background_options is not None and self.background_options.can_wait
        return {**FIELDS, "service_tier": "background_options"} if waits else FIELDS

    def choose_cache(self, default: PromptCache | None) -> PromptCache | None:
        """Return what a provider caches: by default the input of a response that others will begin with."""
        default = None if self.is_single else default
        return choose_cache(self.prompt_cache_options, self.prompt_cache_retention, default)

    @property
    def has_raw_reasoning(self) -> bool:
        """Return whether reasoning is raw instead of a summary. Not every client supports raw reasoning."""
        return self.reasoning is not None and self.reasoning.summary is None

    @property
    def shortens(self) -> bool:
        """Return whether a history that is too long is cut, instead of refused."""
        return self.truncation == "auto" or bool(self.context_management)

    @property
    def signs_items(self) -> bool:
        """Return whether items of the response may have signed content."""
        return "reasoning.encrypted_content" in self.include or bool(self.context_management)

    def to_decoding(self) -> Decoding:
        """Return the sampling parameters of the model call."""
        return Decoding(
            temperature=self.temperature,
            top_p=self.top_p,
            max_tokens=self.max_output_tokens,
            frequency_penalty=self.frequency_penalty,
            presence_penalty=self.presence_penalty,
        )


class ResponseHeader(Schema):
    """The first record of a response. It is written once, before the first event, and never changed."""

    response_id: str
    created_at: int
    """Seconds since 1970."""
    model: str
    """The name that the request has."""
    settings: ResponseSettings = Field(default_factory=ResponseSettings)
    input: list[Item] = Field(default_factory=list)
    """The request's own items, not those of the previous responses."""
    previous_response_id: Omitted[str] = None
    conversation_id: Omitted[str] = None
    ancestors: list[str] = Field(default_factory=list)
    """The ids of the previous responses, 22 characters each, back to and including the last one whose depth is a
    multiple of 100."""
    depth: int = 0
    """The number of previous responses."""
    background: bool = False
    streamed: Annotated[bool, Field(exclude_if=is_unset)] = False
    """The events of a background response are stored, too."""
    creator: Omitted[dict[str, str]] = None
    """The principal of a background response, as in the context of a request, without a credential."""
    sender: Omitted[str] = None
    """The caller and its end user, if the response continues a conversation for an end user."""
    user_hash: Omitted[str] = None
    """The end user of a background response whose header names one."""
    until: float = 0.0
    """The end of a foreground response's first lease, in seconds since 1970. The lease record has the end of a
    renewed one."""
    expires_at: Omitted[int] = None
    """Seconds since 1970, after which the response does not exist."""
    listed: list[McpListTools] = Field(default_factory=list)
    """The tools of MCP servers as they were listed at the start."""
    texts: list[str] = Field(default_factory=list)
    """The texts of the input's files, in order, for the model."""

    def set_input(self, items: Iterable[StoredItem]) -> None:
        """Set the items of the input, and the texts of their files."""
        stored = list(items)
        self.input = [each.item for each in stored]
        self.texts = [text for each in stored for text in each.texts]

    @property
    def stop_names(self) -> list[str]:
        """Return the names of the stops of the response and its conversation."""
        own = [stop_name("response", self.response_id)]
        return [*own, stop_name("conversation", self.conversation_id)] if self.conversation_id else own


class ResponseOutcome(Schema):
    """The ending of a response, its last record."""

    status: ResponseStatus
    completed_at: Omitted[int] = None
    """Seconds since 1970; only completed responses have it."""
    usage: Omitted[Usage] = None
    error: Omitted[ResponseError] = None
    incomplete_reason: Omitted[str] = None
    """max_output_tokens, content_filter, max_tool_calls, max_infer_iters or budget."""
    consumption: Omitted[Consumption] = None
    partial: Annotated[list[OutputItem], Field(exclude_if=is_unset)] = Field(default_factory=list)
    """The items of an interrupted answer, which were streamed and are in no step. The API returns them, but no
    response continues from them."""

    @property
    def broke_off(self) -> bool:
        """Return whether the response ended before its answer did."""
        return self.status in (ResponseStatus.failed, ResponseStatus.cancelled)


class MergedInput(Schema):
    """The input of a request that the running response has taken, with the ids of its items.

    `message_id` is that of the request's message. `fingerprint` is that of the attempt that sent it.
    """

    message_id: str
    items: list[Item]
    fingerprint: Omitted[str] = None


class ResponseRecord(Schema):
    """One entry of a response's log: a step with its details, an ending, or the last step with the ending."""

    skipped: Omitted[int] = None
    """The number of output indexes of interrupted items before it, in the background."""
    step: Omitted[Step] = None
    details: Omitted[AnswerDetails] = None
    """What the model and the API need besides the step."""
    cited: Omitted[dict[str, str]] = None
    """The names, by their ids, of the files that the step's text cites and that were found before this response;
    None without markers in the text."""
    early: Omitted[list[ToolExecutionStep]] = None
    """The steps of calls whose results arrived before those of earlier calls. They are appended later, in the
    model's order."""
    sent: Omitted[list[str]] = None
    """The ids of approved calls that are sent after this record."""
    usage: Omitted[Usage] = None
    """That of the response so far, in the background, where another process may resume from a record."""
    consumption: Omitted[Consumption] = None
    """As `usage`."""
    ending: Omitted[ResponseOutcome] = None
    unfinished: Omitted[PartialStep] = None
    """The unfinished step of a response that failed or was cancelled. In the foreground, it has its streamed text for
    readers who rejoin; in the background, only a step that failed is known, without text."""
    merged: Omitted[list[MergedInput]] = None
    """The input that was taken before the next model call."""
    compaction: Omitted[CompactedHistory] = None
    """A compaction, which replaces all messages before it."""
    compaction_id: Omitted[str] = None
    """The id of its step, which has the time at which it began."""
    compacted_at: Omitted[Timestamp] = None
    """When its summary was complete."""
    spent: Omitted[str] = None
    """The totals of a conversation with a budget (`SessionLedger.pack`), as of this record."""

    def without_images(self) -> "ResponseRecord | None":
        """Return the record as models get it; None if it has no large image."""
        changed = without_images(self.step, self.early)
        return self.model_copy(update=changed) if changed else None


@dataclass(slots=True)
class StoredResponse:
    """A response as it is stored. `records` ends with the first ending."""

    header: ResponseHeader
    records: list[ResponseRecord] = field(default_factory=list)
    size: int = 0
    """Bytes of JSON."""
    taken_up: bool = False
    """A worker has started to run it in the background, which its lease shows."""
    lease_until: int | None = None
    """The end of its renewed lease, in milliseconds since 1970."""
    skipped: int = 0
    """Bytes of `size` before its last compaction, which later responses do not need."""

    @property
    def creator(self) -> Principal | None:
        """Return the principal for which a background response runs; None if an event created it."""
        context = self.header.creator
        return None if context is None else Principal.from_context(context)

    @property
    def ending(self) -> ResponseOutcome | None:
        return self.records[-1].ending if self.records else None

    @property
    def has_lapsed(self) -> bool:
        """Return whether this is a foreground response without an ending whose lease has lapsed."""
        ends = max(self.header.until, (self.lease_until or 0) / 1000)
        return not self.header.background and self.ending is None and time.time() > ends

    @property
    def status(self) -> ResponseStatus:
        """Return the status. A background response is queued until a worker starts it."""
        if self.ending is not None:
            return self.ending.status
        waits = self.header.background and not self.records and not self.taken_up
        return ResponseStatus.queued if waits else ResponseStatus.in_progress

    @property
    def steps(self) -> list[Step]:
        return [record.step for record in self.records if record.step is not None]

    @property
    def spent(self) -> str | None:
        """Return the newest totals of the conversation in the response's log; None if it has none."""
        return next((record.spent for record in reversed(self.records) if record.spent is not None), None)

    @property
    def merged(self) -> list[MergedInput]:
        """Return the input that was taken while the response ran, in order."""
        return [each for record in self.records for each in record.merged or ()]

    @property
    def merged_items(self) -> list[Item]:
        return [item for each in self.merged for item in each.items]

    @property
    def usage(self) -> Usage | None:
        """Return the usage of the last record that has one."""
        told = [record.ending.usage if record.ending else record.usage for record in self.records]
        return next((usage for usage in reversed(told) if usage is not None), None)

    @property
    def service_tier(self) -> str | None:
        """Return the tier that served the last answer; None before the first one has ended."""
        answers = (record for record in reversed(self.records) if isinstance(record.step, InferenceStep))
        last = next(answers, None)
        if last is None:
            return None
        return (last.details.service_tier if last.details else None) or DEFAULT_TIER

    @property
    def consumption(self) -> Consumption | None:
        """Return what the response has consumed, as far as its records have it."""
        counted = [record.ending.consumption if record.ending else record.consumption for record in self.records]
        return next((consumption for consumption in reversed(counted) if consumption is not None), None)
