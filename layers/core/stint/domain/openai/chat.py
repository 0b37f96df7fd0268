"""Chat completions requests. Each documented field is supported, or refused by its name.

https://platform.openai.com/docs/api-reference/chat/create
"""

from typing import Annotated, Any, Literal

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    Tag,
    ValidationInfo,
    field_validator,
)

from stint.domain.fields import KnownTypes, Metadata, Nothing, Omitted, SupportedValues, UnsupportedField, invalid
from stint.domain.inference import Decoding, Effort, ServiceTier, Verbosity
from stint.domain.limits import MAX_MESSAGES, EndUserId, PartLimit, ToolLimit
from stint.domain.openai.chat_input import NO_AUDIO, ChatAllowedToolsChoice, ChatFunctionChoice, ChatMessage, ChatTool
from stint.domain.openai.prompt_cache import CacheOptionsHint, CacheRetention
from stint.domain.openai.response_options import JsonObject, PlainText
from stint.domain.openai.response_requests import CacheKey, ModelName
from stint.domain.openai.response_tools import REFUSED_TOOLS
from stint.domain.schema import Request
from stint.domain.tools import ToolName

MAX_STOPS = 4
MAX_TOP_LOGPROBS = 20


class ChatJsonSchema(Request):
    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True, serialize_by_alias=True)

    name: ToolName
    description: str | None = None
    json_schema: Annotated[dict[str, Any] | None, Field(alias="schema")] = None
    strict: StrictBool = False


class ChatSchemaFormat(Request):
    type: Literal["json_schema"] = "json_schema"
    json_schema: ChatJsonSchema


ChatFormat = Annotated[
    Annotated[PlainText | JsonObject | ChatSchemaFormat, Field(discriminator="type")],
    BeforeValidator(KnownTypes("response format", ("text", "json_object", "json_schema"))),
]


def form_of_choice(value: Any) -> str:
    if isinstance(value, str):
        return "mode"
    kind = value.get("type") if isinstance(value, dict) else getattr(value, "type", None)
    return "allowed_tools" if kind == "allowed_tools" else "function"


FUNCTION_CHOICE = KnownTypes("tool choice", ("function", "allowed_tools"), {"custom": REFUSED_TOOLS["custom"]})
ChatToolChoice = Annotated[
    Annotated[
        Annotated[Literal["none", "auto", "required"], Tag("mode")]
        | Annotated[ChatAllowedToolsChoice, Tag("allowed_tools")]
        | Annotated[ChatFunctionChoice, Tag("function")],
        Discriminator(form_of_choice),
    ],
    BeforeValidator(FUNCTION_CHOICE),
]


class ChatStreamOptions(Request):
    """`include_usage` adds a last chunk with the usage, `include_obfuscation` pads the chunks."""

    model_config = ConfigDict(extra="forbid")

    include_usage: StrictBool = False
    include_obfuscation: StrictBool = False


def read_stop(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


Penalty = Annotated[StrictFloat, Field(ge=-2, le=2)]
Tokens = Annotated[StrictInt, Field(ge=1)]


class ChatCompletionRequest(Request):
    """The body of POST /chat/completions. `max_tokens` is an older name of `max_completion_tokens`.

    The completion is stored only if `store` is true.
    """

    model: ModelName
    messages: Annotated[list[ChatMessage], Field(min_length=1, max_length=MAX_MESSAGES), PartLimit]
    stream: StrictBool = False
    stream_options: Omitted[ChatStreamOptions] = None
    temperature: Omitted[Annotated[StrictFloat, Field(ge=0, le=2)]] = None
    top_p: Omitted[Annotated[StrictFloat, Field(ge=0, le=1)]] = None
    frequency_penalty: Omitted[Penalty] = None
    presence_penalty: Omitted[Penalty] = None
    max_tokens: Omitted[Tokens] = None
    max_completion_tokens: Omitted[Tokens] = None
    stop: Annotated[
        Omitted[Annotated[list[str], Field(max_length=MAX_STOPS)]],
        BeforeValidator(read_stop, json_schema_input_type=str | list[str] | None),
    ] = None
    seed: Omitted[StrictInt] = None
    tools: Annotated[list[ChatTool], ToolLimit] = Field(default_factory=list)
    tool_choice: Omitted[ChatToolChoice] = None
    parallel_tool_calls: Omitted[StrictBool] = None
    response_format: ChatFormat = Field(default_factory=PlainText)
    reasoning_effort: Omitted[Effort] = None
    verbosity: Omitted[Verbosity] = None
    metadata: Metadata = Field(default_factory=dict)
    service_tier: Omitted[ServiceTier] = None
    safety_identifier: Omitted[Annotated[str, Field(max_length=64)]] = None
    prompt_cache_key: Omitted[CacheKey] = None
    prompt_cache_retention: CacheRetention = None
    user: Omitted[EndUserId] = None
    n: Annotated[Omitted[StrictInt], SupportedValues((1,), "Only one completion per request is supported")] = None
    modalities: Annotated[Omitted[list[str]], SupportedValues((["text"],), NO_AUDIO)] = None
    logprobs: Omitted[StrictBool] = None
    top_logprobs: Omitted[Annotated[StrictInt, Field(ge=0, le=MAX_TOP_LOGPROBS)]] = None
    logit_bias: Annotated[Omitted[dict[str, Any]], SupportedValues(({},), "No provider supports logit_bias")] = None
    store: Omitted[StrictBool] = None
    audio: Annotated[Nothing, UnsupportedField(NO_AUDIO)] = None
    prediction: Annotated[Nothing, UnsupportedField("No provider supports predicted output")] = None
    functions: Annotated[Nothing, UnsupportedField("It is deprecated. Use tools")] = None
    function_call: Annotated[Nothing, UnsupportedField("It is deprecated. Use tool_choice")] = None
    web_search_options: Annotated[Nothing, UnsupportedField("Use POST /v1/responses with the tool web_search")] = None
    moderation: Annotated[Nothing, UnsupportedField("Completions are not moderated. Remove it")] = None
    prompt_cache_options: CacheOptionsHint = None

    @field_validator("tool_choice")
    @classmethod
    def check_tool_choice(cls, choice: ChatToolChoice | None, info: ValidationInfo) -> ChatToolChoice | None:
        if choice is None or "tools" not in info.data:
            return choice
        declared = {tool.function.name for tool in info.data["tools"]}
        if choice == "required" and not declared:
            raise invalid("A tool is required by tool_choice, but tools has none. Add the tool.")
        for name in names_of(choice):
            if name not in declared:
                raise invalid(f"The function {name!r} is not among the tools of the request.")
        return choice

    @field_validator("top_logprobs")
    @classmethod
    def check_top_logprobs(cls, count: int | None, info: ValidationInfo) -> int | None:
        if count and not info.data.get("logprobs"):
            raise invalid("top_logprobs needs logprobs true. Send both, or neither.")
        return count

    def to_decoding(self) -> Decoding:
        """Return the sampling parameters of the model call."""
        return Decoding(
            temperature=self.temperature,
            top_p=self.top_p,
            max_tokens=self.max_completion_tokens or self.max_tokens,
            frequency_penalty=self.frequency_penalty,
            presence_penalty=self.presence_penalty,
            stop=tuple(self.stop) if self.stop else None,
            seed=self.seed,
        )


def names_of(choice: ChatToolChoice) -> list[str]:
    """Return the names of the functions of a choice."""
    match choice:
        case ChatAllowedToolsChoice():
            return [each.function.name for each in choice.allowed_tools.tools]
        case ChatFunctionChoice():
            return [choice.function.name]
    return []
