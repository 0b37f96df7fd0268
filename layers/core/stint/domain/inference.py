"""A model call: its request, and the closed union of its chunks.

All APIs and all providers meet here. A field of a request changes the meaning of the answer, so that an adapter honours
or refuses it, or it is a hint, which has no effect where there is nothing to set. What only one provider needs, such as
its form of reasoning, is kept as an opaque text.
"""

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Field

from stint.dataclasses import dataclass, field
from stint.domain.content import Content
from stint.domain.fields import Omitted, is_unset
from stint.domain.schema import Request, Schema
from stint.domain.tools import AskedInput, ToolCall, ToolChoice


@dataclass(frozen=True, slots=True)
class Decoding:
    """Sampling parameters in the form that both APIs and all providers share. None is the provider's default."""

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    max_tokens: int | None = None
    """Maximum tokens of the answer."""
    frequency_penalty: float | None = None
    """OpenAI's: subtracted from a token's score for each time that it occurred; 0 is none."""
    presence_penalty: float | None = None
    """OpenAI's: subtracted from a token's score if it occurred; 0 is none."""
    repetition_penalty: float | None = None
    """Hugging Face's: the score is divided by it; 1 is none."""
    stop: tuple[str, ...] | None = None
    """Texts before which the answer ends."""
    seed: int | None = None


class JsonSchemaResponseFormat(Request):
    type: Literal["json_schema"] = "json_schema"
    json_schema: dict[str, Any]


class GrammarResponseFormat(Request):
    type: Literal["grammar"] = "grammar"
    bnf: dict[str, Any]


class JsonObjectResponseFormat(Request):
    """Any JSON object, a format of chat completions and the Responses API."""

    type: Literal["json_object"] = "json_object"


ResponseFormat = Annotated[JsonSchemaResponseFormat | GrammarResponseFormat, Field(discriminator="type")]
AnswerFormat = JsonSchemaResponseFormat | GrammarResponseFormat | JsonObjectResponseFormat
"""The format of a model's answer in any of the APIs."""


@dataclass(frozen=True, slots=True)
class ReasoningOptions:
    """Options of a model that reasons before it answers.

    `effort` is none, minimal, low, medium, high, xhigh or max; `summary` is auto, concise or detailed. None is the
    provider's default.
    """

    effort: str | None = None
    summary: str | None = None


Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
Summary = Literal["auto", "concise", "detailed"]
Verbosity = Literal["low", "medium", "high"]
ServiceTier = Literal["auto", "default", "flex", "scale", "priority", "fast", "ultrafast"]


class ReasoningSettings(Request):
    """The effort and summary of a model's reasoning. Null is the provider's default."""

    effort: Effort | None = None
    summary: Summary | None = None


def to_options(settings: ReasoningSettings | None) -> ReasoningOptions | None:
    """Return the options of the model call."""
    return None if settings is None else ReasoningOptions(effort=settings.effort, summary=settings.summary)


def to_tier(asked: ServiceTier | None) -> str | None:
    """Return the service tier of a model call; None leaves it to the provider. `fast` is a newer name of priority."""
    return None if asked == "auto" else "priority" if asked == "fast" else asked


class Reasoning(Schema):
    """A model's reasoning before its answer, in the form that its provider accepts in later calls.

    `signature` and `redacted` belong to the adapter. All others send them back unchanged with the text. `late` is the
    signature of what the adapter has to keep from after the first word of the answer. Callers never get it.
    """

    text: str = ""
    signature: str = ""
    redacted: str = ""
    late: str = Field(default="", exclude_if=is_unset)

    @property
    def shown(self) -> "Reasoning | None":
        """Return what callers get; None if that is nothing."""
        return self.model_copy(update={"late": ""}) if self.text or self.signature or self.redacted else None


class AnswerDetails(Schema):
    """Details of an answer that are not in its inference step."""

    reasoning: Reasoning | None = None
    refusal: bool = False
    """The text of the answer is a refusal."""
    filtered: bool = False
    """The provider's content filter ended the answer."""
    text_lengths: Omitted[str] = None
    """The lengths of the streamed pieces of the text; see `stint.domain.text_lengths`."""
    reasoning_lengths: Omitted[str] = None
    """The lengths of the streamed pieces of the reasoning."""
    unsent: Omitted[list[str]] = None
    """The ids of the calls that the server does not run, or had not started when the run ended."""
    unannounced: Omitted[bool] = None
    """The step is that of a call which had finished when the run ended, and no event of the stream showed it."""
    refused: Omitted[list[str]] = None
    """The ids of the calls that the tool choice forbids."""
    service_tier: Omitted[str] = None
    """The tier that served, unless that is the default."""
    asked: Omitted[dict[str, AskedInput]] = None
    """What the servers of tools ask the client, by the ids of their calls, which are not finished."""
    cuts: Omitted[list[int]] = None
    """The places before which messages were dropped for this answer, one after the other; see `Transcript.shorten`."""


# Messages have weak references, because adapters keep what they wrote of one as long as it exists.
@dataclass(frozen=True, slots=True, weakref_slot=True)
class SystemText:
    """The instructions, as the first message. `name` distinguishes participants of one role, here and below."""

    text: str
    name: str = ""


@dataclass(frozen=True, slots=True, weakref_slot=True)
class UserInput:
    """A message of the user. `breakpoints` has the places of items of its content; see `PromptCache`."""

    content: Content
    name: str = ""
    breakpoints: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, weakref_slot=True)
class AssistantAnswer:
    """An earlier answer of the model: text and tool calls, either of which may be empty."""

    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    reasoning: Reasoning | None = None
    name: str = ""


@dataclass(frozen=True, slots=True, weakref_slot=True)
class ToolResult:
    """The result of an earlier call, which `call_id` identifies."""

    call_id: str
    tool_name: str
    content: Content


ModelMessage = SystemText | UserInput | AssistantAnswer | ToolResult


@dataclass(frozen=True, slots=True)
class ToolSignature:
    """A tool as the model sees it. `parameters` is a JSON schema of type object.

    `annotations` are an MCP server's hints, which models do not get. `strict` requires arguments that satisfy the
    schema. None is the provider's default. A `repeatable` tool may be called again after an interruption, because a
    second call changes nothing.
    """

    name: str
    description: str
    parameters: dict[str, Any]
    strict: bool | None = None
    repeatable: bool = field(default=False, compare=False)
    annotations: dict[str, Any] | None = field(default=None, compare=False)


CacheLifetime = Literal["5m", "1h"]


@dataclass(frozen=True, slots=True)
class PromptCache:
    """The wish that a provider keeps the input of a call in its cache, because later calls begin with it.

    `implicit` means the whole input. Items of messages that are `breakpoints` end further inputs to be kept.
    """

    lifetime: CacheLifetime = "5m"
    implicit: bool = True


DEFAULT_TIER = "default"
"""The service tier with a provider's standard price and speed."""


@dataclass(slots=True)
class CallTimes:
    """When a model call was sent, and when its first token came, in seconds of `time.monotonic`.

    A token is a piece of text, of reasoning, of a refusal, or of a tool call.
    """

    sent: float
    first_token: float | None = None

    @property
    def first_token_ms(self) -> int | None:
        """Return the milliseconds before the first token; None if there was none."""
        return None if self.first_token is None else round((self.first_token - self.sent) * 1000)


@dataclass(frozen=True, slots=True)
class InferenceRequest:
    """One call of a model. None is the provider's default."""

    model: str
    """The provider's own id, without the routing prefix."""
    messages: tuple[ModelMessage, ...]
    tools: tuple[ToolSignature, ...] = ()
    tool_choice: ToolChoice | str = ToolChoice.auto
    """A choice, or the name of the tool that must be called."""
    decoding: Decoding = Decoding()
    response_format: AnswerFormat | None = None
    parallel_tool_calls: bool | None = None
    reasoning: ReasoningOptions | None = None
    verbosity: str | None = None
    """low, medium or high: a hint that has no effect if the provider or the model has none."""
    top_logprobs: int | None = None
    """The number of likely tokens with their log probabilities at each position of the text, besides the token
    itself."""
    cache: PromptCache | None = None
    """A hint. Without it, a provider that charges for writing to its cache writes nothing."""
    cache_key: str = ""
    """The same for calls that begin alike; see `CacheKeys`."""
    service_tier: str | None = None
    """A provider honours or refuses it."""
    labels: tuple[tuple[str, str], ...] = ()
    """For whom the call is made. A provider that keeps a log may write them to it."""
    times: CallTimes | None = field(default=None, compare=False, repr=False)
    """Gets the time at which the call is sent, which only its model knows."""


WrittenTokens = Annotated[int, Field(exclude_if=is_unset)]
"""Tokens that were written to a cache. Few calls write any, and each record pays for its bytes."""


CACHE_COUNTS = ("cached_tokens", "cache_write_tokens", "cache_write_1h_tokens")


class Usage(Schema):
    """Token counts of the provider, summed over the model calls of a run.

    Of the input, `cached_tokens` were read from the provider's cache, and `cache_write_tokens` written to it, of these
    `cache_write_1h_tokens` for an hour. `reasoning_tokens` are a part of the output.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    total_tokens: int = 0
    cached_tokens: int = 0
    """Tokens of the input that were read from the provider's cache."""
    cache_write_tokens: WrittenTokens = 0
    """Tokens of the input that were written to the provider's cache."""
    cache_write_1h_tokens: WrittenTokens = 0
    """Tokens of these that were written for an hour."""
    reasoning_tokens: int = 0
    """Tokens of the output that are reasoning."""

    def without_cache(self) -> "Usage":
        """Return the counts without those of the provider's cache."""
        return self.model_copy(update=dict.fromkeys(CACHE_COUNTS, 0))

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(**{name: getattr(self, name) + getattr(other, name) for name in Usage.model_fields})

    def __sub__(self, other: "Usage") -> "Usage":
        return Usage(**{name: getattr(self, name) - getattr(other, name) for name in Usage.model_fields})


class FinishReason(StrEnum):
    """The reason why a model stopped. `budget`: the money of its caller did not suffice for the rest of the answer."""

    stop = "stop"
    """The answer is complete."""
    tool_calls = "tool_calls"
    """The model waits for the results of its calls."""
    length = "length"
    """The request's or the model's limit of tokens."""
    content_filter = "content_filter"
    """The provider's filter ended the answer."""
    budget = "budget"
    """The caller's money did not suffice for the rest."""

    @property
    def is_out_of_tokens(self) -> bool:
        """Return whether a limit of tokens cut the answer short: the request's, the model's, or a budget's."""
        return self in (FinishReason.length, FinishReason.budget)


@dataclass(frozen=True, slots=True)
class Accepted:
    """The provider accepted the request. It comes at most once, before all other chunks. A refusal raises instead."""


@dataclass(frozen=True, slots=True)
class TokenLogprob:
    """The log probability of a token. `utf8` has its bytes, `top` the most likely tokens at its position."""

    token: str
    logprob: float
    utf8: tuple[int, ...] | None = None
    top: tuple["TokenLogprob", ...] = ()


@dataclass(frozen=True, slots=True)
class TextChunk:
    """A piece of text. It has the log probabilities of its tokens if the request asks for them."""

    text: str
    logprobs: tuple[TokenLogprob, ...] = ()


@dataclass(frozen=True, slots=True)
class ReasoningChunk:
    """A piece of the model's reasoning. The joined pieces of each field are a `Reasoning`.

    A `late` piece comes after the first word of the answer, or has nothing for callers. Only its signature is kept.
    """

    text: str = ""
    signature: str = ""
    redacted: str = ""
    late: bool = False


@dataclass(frozen=True, slots=True)
class RefusalChunk:
    """A piece of a refusal."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCallChunk:
    """A piece of a tool call.

    `index` identifies a call within the answer. The first piece of a call has its id and name; the joined `arguments`
    of all its pieces are a JSON text.
    """

    index: int
    call_id: str = ""
    name: str = ""
    arguments: str = ""


@dataclass(frozen=True, slots=True)
class Finished:
    """The end of an answer, exactly once, as the last chunk. `usage` is None if the provider counts nothing.

    `service_tier` is the tier that served, None if the provider does not say it. `dollars` are what the call cost, None
    if that is not known, or hidden.
    """

    reason: FinishReason
    usage: Usage | None = None
    service_tier: str | None = None
    dollars: float | None = None


ModelChunk = Accepted | TextChunk | ReasoningChunk | RefusalChunk | ToolCallChunk | Finished
