"""Requests of the Responses API. Each documented field is supported, or refused by its name.

The context of a model call is the same in all of them, so that a client can count or compact with the body with which
it would create a response. https://platform.openai.com/docs/api-reference/responses
"""

from typing import Annotated, Any, Self
from urllib.parse import unquote

from pydantic import (
    BeforeValidator,
    Field,
    PrivateAttr,
    StrictBool,
    StrictFloat,
    StrictInt,
    ValidationInfo,
    field_validator,
)

from stint.domain.context_management import ContextManagements
from stint.domain.expiry import Expiry
from stint.domain.fields import Metadata, Nothing, Omitted, SupportedValues, UnsupportedField, invalid
from stint.domain.inference import ServiceTier
from stint.domain.limits import MAX_INFER_ITERS, EndUserId, ToolLimit, too_long
from stint.domain.mcp_servers import refuse_size
from stint.domain.openai.input_items import Input
from stint.domain.openai.prompt_cache import CacheOptionsHint, CacheRetention
from stint.domain.openai.response_options import Include, ReasoningRequest, StreamOptions, TextOptions
from stint.domain.openai.response_tools import (
    McpTool,
    ResponseTool,
    ResponseToolChoice,
    check_choice,
    check_tools,
    without_credentials,
)
from stint.domain.openai.stored_responses import (
    BackgroundOptions,
    ResponseSettings,
    Truncation,
)
from stint.domain.redaction import MASK
from stint.domain.run_signals import OnDisconnect
from stint.domain.schema import Request
from stint.domain.when_busy import WhenBusy

ModelName = Annotated[str, Field(min_length=1)]
CacheKey = Annotated[str, Field(max_length=64)]
ImageOptions = Annotated[Nothing, UnsupportedField("Images are passed on unchanged. Remove it")]


class ConversationReference(Request):
    id: Annotated[str, Field(min_length=1)]


def read_reference(value: Any) -> Any:
    """Read a string as the id of a conversation."""
    return {"id": value} if isinstance(value, str) else value


ConversationParam = Annotated[
    ConversationReference, BeforeValidator(read_reference, json_schema_input_type=str | ConversationReference)
]


class ContextRequest(Request):
    """The context of a model call. A string as `input` is one user message.

    Without a `model`, the server's default model answers.
    """

    model: Omitted[ModelName] = None
    input: Input = Field(default_factory=list)
    instructions: Omitted[str] = None
    previous_response_id: Omitted[str] = None
    conversation: Omitted[ConversationParam] = None
    tools: Annotated[list[ResponseTool], ToolLimit] = Field(default_factory=list)
    tool_choice: Omitted[ResponseToolChoice] = None
    parallel_tool_calls: Omitted[StrictBool] = None
    text: Omitted[TextOptions] = None
    reasoning: Omitted[ReasoningRequest] = None
    truncation: Omitted[Truncation] = None
    _lenient: bool = PrivateAttr(default=False)

    @field_validator("conversation")
    @classmethod
    def check_conversation(
        cls, conversation: ConversationReference | None, info: ValidationInfo
    ) -> ConversationReference | None:
        if conversation is not None and info.data.get("previous_response_id") is not None:
            raise invalid("Send either conversation or previous_response_id, not both.")
        return conversation

    @field_validator("tools")
    @classmethod
    def check_names(cls, tools: list[ResponseTool]) -> list[ResponseTool]:
        for tool in tools:
            if not isinstance(tool, McpTool):
                continue
            if fault := too_long(f"server_url of {tool.server_label!r}", tool.server_url):
                raise invalid(fault)
            if MASK in unquote(tool.server_url):
                raise invalid(
                    f"The server_url of {tool.server_label!r} contains {MASK}, which replaces possible keys in "
                    "responses. Send the whole URL."
                )
        refuse_size(sum(tool.size_of_headers for tool in tools if isinstance(tool, McpTool)))
        return check_tools(tools)

    @field_validator("tool_choice")
    @classmethod
    def check_tool_choice(cls, choice: ResponseToolChoice | None, info: ValidationInfo) -> ResponseToolChoice | None:
        if choice is not None and "tools" in info.data:
            check_choice(choice, info.data["tools"])
        return choice

    def for_llama_stack(self) -> Self:
        """Return the request with the defaults of Llama Stack's own path.

        Calls of MCP servers need no approval unless the request says so, and a call may have no result.
        """
        never = {"require_approval": "never"}
        tools = [
            tool.model_copy(update=never)
            if isinstance(tool, McpTool) and "require_approval" not in tool.model_fields_set
            else tool
            for tool in self.tools
        ]
        changed = self.model_copy(update={"tools": tools})
        changed._lenient = True
        return changed

    @property
    def lenient(self) -> bool:
        """Whether a call in the context may have no result."""
        return self._lenient

    @property
    def conversation_id(self) -> str | None:
        return self.conversation.id if self.conversation else None


class CreateResponse(ContextRequest):
    """The body of POST /responses. `max_infer_iters`, the maximum of model calls, is Llama Stack's extension."""

    include: list[Include] = Field(default_factory=list)
    metadata: Metadata = Field(default_factory=dict)
    temperature: Omitted[Annotated[StrictFloat, Field(ge=0, le=2)]] = None
    top_p: Omitted[Annotated[StrictFloat, Field(ge=0, le=1)]] = None
    presence_penalty: Omitted[Annotated[StrictFloat, Field(ge=-2, le=2)]] = None
    frequency_penalty: Omitted[Annotated[StrictFloat, Field(ge=-2, le=2)]] = None
    max_output_tokens: Omitted[Annotated[StrictInt, Field(ge=16)]] = None
    max_tool_calls: Omitted[Annotated[StrictInt, Field(ge=1)]] = None
    max_infer_iters: Omitted[Annotated[StrictInt, Field(ge=1, le=MAX_INFER_ITERS)]] = None
    stream: StrictBool = False
    stream_options: Omitted[StreamOptions] = None
    store: StrictBool = True
    expires_after: Omitted[Expiry] = None
    when_busy: Omitted[WhenBusy] = None
    background: StrictBool = False
    on_disconnect: Omitted[OnDisconnect] = None
    service_tier: Omitted[ServiceTier] = None
    safety_identifier: Omitted[Annotated[str, Field(max_length=64)]] = None
    prompt_cache_key: Omitted[CacheKey] = None
    prompt_cache_retention: CacheRetention = None
    user: Omitted[EndUserId] = None
    top_logprobs: Annotated[
        Omitted[Annotated[StrictInt, Field(ge=0, le=20)]],
        SupportedValues((0,), "Responses have no log probabilities. Use POST /v1/chat/completions", kept=True),
    ] = None
    prompt: Annotated[Nothing, UnsupportedField("Prompts are not stored. Send the text as instructions")] = None
    context_management: Omitted[ContextManagements] = None
    moderation: Annotated[Nothing, UnsupportedField("Responses are not moderated. Remove it")] = None
    image: ImageOptions = None
    access_programs: Annotated[Nothing, UnsupportedField("Access programs are not supported. Remove it")] = None
    prompt_cache_options: CacheOptionsHint = None
    background_options: Omitted[BackgroundOptions] = None

    @field_validator("background")
    @classmethod
    def check_background(cls, background: bool, info: ValidationInfo) -> bool:
        if not background:
            return background
        if info.data.get("when_busy") not in (None, "reject"):
            raise invalid("A background response does not wait for its conversation. Remove when_busy, or background.")
        if info.data.get("store") is False:
            raise invalid("A background response must be stored. Remove store, or set it to true.")
        if any(isinstance(tool, McpTool) and tool.carries_credentials for tool in info.data.get("tools", [])):
            raise invalid(
                "Credentials are not stored, so a background response cannot use them. "
                "Remove the headers and the authorization of its MCP tools."
            )
        return background

    @field_validator("on_disconnect")
    @classmethod
    def check_on_disconnect(cls, chosen: OnDisconnect | None, info: ValidationInfo) -> OnDisconnect | None:
        if chosen == "cancel" and info.data.get("store") is False:
            raise invalid("Heartbeats are only for stored responses. Remove on_disconnect, or store.")
        if chosen == "cancel" and info.data.get("background"):
            raise invalid("A background response runs without its client. Remove on_disconnect, or background.")
        return chosen

    @field_validator("background_options")
    @classmethod
    def check_background_options(
        cls, options: BackgroundOptions | None, info: ValidationInfo
    ) -> BackgroundOptions | None:
        tier, background = info.data.get("service_tier"), info.data.get("background", True)
        if options is not None and (conflict := options.find_conflict(tier, background=background)):
            raise invalid(conflict)
        return options

    @property
    def is_single(self) -> bool:
        """Return whether no other model call will begin with this one's input."""
        return not (self.store or self.tools or self.previous_response_id or self.conversation)

    def to_settings(self) -> ResponseSettings:
        """Return the stored settings: all of the request but its input and credentials."""
        own = {name: getattr(self, name) for name in ResponseSettings.model_fields if name in type(self).model_fields}
        options = self.stream_options
        return ResponseSettings.model_validate(
            own
            | {
                "tools": without_credentials(self.tools),
                "reasoning": self.reasoning.to_settings() if self.reasoning else None,
                "store": None if self.store else False,
                "is_single": True if self.is_single else None,
                "include_obfuscation": True if options and options.include_obfuscation else None,
            }
        )


class CompactRequest(Request):
    """The body of POST /responses/compact."""

    model: ModelName
    input: Input = Field(default_factory=list)
    instructions: Omitted[str] = None
    previous_response_id: Omitted[str] = None
    prompt_cache_key: Omitted[CacheKey] = None
    prompt_cache_retention: CacheRetention = None
    service_tier: Omitted[ServiceTier] = None
    prompt_cache_options: CacheOptionsHint = None
    image: ImageOptions = None


class InputTokensRequest(ContextRequest):
    """The body of POST /responses/input_tokens."""

    personality: Annotated[
        Nothing, UnsupportedField("Personalities are not supported. Describe it in instructions")
    ] = None
