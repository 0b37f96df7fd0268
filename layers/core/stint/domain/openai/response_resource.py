"""The response as the API returns it, and the other objects that the Responses API returns.

A `Response` is never stored. `make_response` derives it from the request in the header of the log and from what the
records say, so a field that the API gains needs no change of stored data.
"""

from collections.abc import Sequence
from typing import Literal, get_args

from pydantic import Field

from stint.domain.fields import Omitted
from stint.domain.inference import DEFAULT_TIER, ReasoningSettings, ServiceTier, Usage
from stint.domain.openai.items import Item, OutputItem
from stint.domain.openai.lists import ListObject
from stint.domain.openai.prompt_cache import CacheOptions, show_retention
from stint.domain.openai.response_options import TextOptions
from stint.domain.openai.response_requests import ConversationReference
from stint.domain.openai.response_tools import ResponseTool, ResponseToolChoice
from stint.domain.openai.stored_responses import (
    BackgroundOptions,
    ResponseError,
    ResponseHeader,
    ResponseOutcome,
    ResponseStatus,
    tier_of,
)
from stint.domain.receipts import Receipt
from stint.domain.schema import Schema


class InputTokensDetails(Schema):
    cached_tokens: int = 0
    cache_write_tokens: int = 0


class OutputTokensDetails(Schema):
    reasoning_tokens: int = 0


class ResponseUsage(Schema):
    """Tokens of all model calls of a response."""

    input_tokens: int
    input_tokens_details: InputTokensDetails
    output_tokens: int
    output_tokens_details: OutputTokensDetails
    total_tokens: int

    @classmethod
    def of(cls, usage: Usage) -> "ResponseUsage":
        return cls(
            input_tokens=usage.input_tokens,
            input_tokens_details=InputTokensDetails(
                cached_tokens=usage.cached_tokens, cache_write_tokens=usage.cache_write_tokens
            ),
            output_tokens=usage.output_tokens,
            output_tokens_details=OutputTokensDetails(reasoning_tokens=usage.reasoning_tokens),
            total_tokens=usage.total_tokens,
        )


class IncompleteDetails(Schema):
    reason: str


class Response(Schema):
    """A response as the API returns it. Every key is present, with the default if the request set none.

    Times are in seconds since 1970. `tools` have no credentials.
    """

    id: str
    object: Literal["response"] = "response"
    created_at: int
    completed_at: int | None = None
    status: ResponseStatus
    background: bool = False
    error: ResponseError | None = None
    incomplete_details: IncompleteDetails | None = None
    model: str
    instructions: str | None = None
    previous_response_id: str | None = None
    conversation: ConversationReference | None = None
    output: list[OutputItem] = Field(default_factory=list)
    tools: list[ResponseTool] = Field(default_factory=list)
    tool_choice: ResponseToolChoice = "auto"
    parallel_tool_calls: bool = True
    max_tool_calls: int | None = None
    max_infer_iters: Omitted[int] = None
    text: TextOptions = Field(default_factory=TextOptions)
    reasoning: ReasoningSettings | None = None
    temperature: float = 1.0
    top_p: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    top_logprobs: int = 0
    max_output_tokens: int | None = None
    truncation: str = "disabled"
    usage: ResponseUsage | None = None
    store: bool = True
    service_tier: str = DEFAULT_TIER
    background_options: Omitted[BackgroundOptions] = None
    metadata: dict[str, str] = Field(default_factory=dict)
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None
    prompt_cache_retention: str | None = None
    prompt_cache_options: Omitted[CacheOptions] = None
    prompt: None = None
    user: str | None = None
    receipt: Omitted[Receipt] = None
    expires_at: Omitted[int] = None


SHOWN = frozenset(Response.model_fields)


def show_tier(served: str | None) -> str:
    """Return the name of the tier that served, which is `default` for names that clients of the API do not know."""
    return served if served is not None and served in get_args(ServiceTier) else DEFAULT_TIER


def make_response(
    header: ResponseHeader,
    output: Sequence[OutputItem] = (),
    status: ResponseStatus = ResponseStatus.in_progress,
    ending: ResponseOutcome | None = None,
    served: str | None = None,
) -> Response:
    """Derive the resource from a stored response. `status` applies while there is no ending.

    `served` is the service tier of its last answer. Without one, the resource shows the tier that the request asks for.
    """
    settings = header.settings
    given = {name: value for name in type(settings).model_fields if (value := getattr(settings, name)) is not None}
    if settings.prompt_cache_options is not None:
        given["prompt_cache_options"] = settings.prompt_cache_options.as_applied()
    given["prompt_cache_retention"] = show_retention(settings.prompt_cache_retention)
    asked = tier_of(settings.service_tier, settings.background_options) or settings.service_tier
    given["service_tier"] = show_tier(served or asked)
    return Response(
        id=header.response_id,
        created_at=header.created_at,
        model=header.model,
        background=header.background,
        previous_response_id=header.previous_response_id,
        conversation=ConversationReference(id=header.conversation_id) if header.conversation_id else None,
        output=list(output),
        expires_at=header.expires_at,
        **(outcome_of(ending) if ending else {"status": status}),
        **{name: value for name, value in given.items() if name in SHOWN},
    )


def outcome_of(ending: ResponseOutcome) -> dict[str, object]:
    """Return the fields that the ending determines."""
    reason = ending.incomplete_reason
    return {
        "status": ending.status,
        "completed_at": ending.completed_at,
        "usage": ResponseUsage.of(ending.usage) if ending.usage else None,
        "error": ending.error,
        "incomplete_details": IncompleteDetails(reason=reason) if reason else None,
        "receipt": Receipt.of(ending.consumption) if ending.consumption else None,
    }


class ListedResponse(Response):
    """A response as lists return it, with its own input."""

    input: list[Item] = Field(default_factory=list)


class ResponseList(ListObject[ListedResponse]):
    """A page of responses. With `status`, others may follow after the id `next_after`."""

    next_after: Omitted[str] = None


class ItemList(ListObject[Item]):
    """A page of items."""


class DeletedResponse(Schema):
    id: str
    object: Literal["response"] = "response"
    deleted: Literal[True] = True


class CompactedResponse(Schema):
    """A compacted conversation. `output` is the input of a request that continues it."""

    id: str
    object: Literal["response.compaction"] = "response.compaction"
    created_at: int
    output: list[Item]
    usage: ResponseUsage


class InputTokens(Schema):
    object: Literal["response.input_tokens"] = "response.input_tokens"
    input_tokens: int
