"""Messages of chat completions requests.

Forms of OpenAI's API reference, and `reasoning_content`, which other servers have for the reasoning of an answer.
"""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, StrictBool, model_validator

from stint.domain.fields import KnownTypes, Nothing, Omitted, UnsupportedField, invalid
from stint.domain.openai.parts import MAX_FILE, MAX_IMAGE, FileId, Text
from stint.domain.openai.prompt_cache import CacheBreakpointHint
from stint.domain.openai.response_tools import REFUSED_TOOLS
from stint.domain.schema import Request
from stint.domain.tools import ToolName

NO_AUDIO = "No provider supports audio"
Name = Omitted[Annotated[str, Field(max_length=256)]]
"""The name of a participant, among several of one role."""


class ChatText(Request):
    type: Literal["text"] = "text"
    text: Text
    prompt_cache_breakpoint: CacheBreakpointHint = None


class ChatImageUrl(Request):
    """The URL of an image: https, http or data. `detail` is a hint, passed on to providers that support it."""

    url: Annotated[str, Field(max_length=MAX_IMAGE)]
    detail: Literal["auto", "low", "high"] = "auto"


class ChatImage(Request):
    type: Literal["image_url"] = "image_url"
    image_url: ChatImageUrl
    prompt_cache_breakpoint: CacheBreakpointHint = None


class ChatFileData(Request):
    """A stored file, a data URL, or base64 with the type in the extension of `filename`."""

    file_id: Omitted[FileId] = None
    filename: Omitted[str] = None
    file_data: Omitted[Annotated[str, Field(max_length=MAX_FILE)]] = None

    @model_validator(mode="after")
    def require_one_source(self) -> "ChatFileData":
        if (self.file_data is None) == (self.file_id is None):
            raise invalid("A file needs either file_data or file_id, not both.")
        return self


class ChatFile(Request):
    type: Literal["file"] = "file"
    file: ChatFileData
    prompt_cache_breakpoint: CacheBreakpointHint = None


class ChatRefusal(Request):
    type: Literal["refusal"] = "refusal"
    refusal: Text


def read_content(content: Any) -> Any:
    """Read a string as one part."""
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


REFUSED_PARTS = {"input_audio": NO_AUDIO[0].lower() + NO_AUDIO[1:]}
TEXT = BeforeValidator(KnownTypes("content part", ("text",)))
TextContent = Annotated[
    list[Annotated[ChatText, TEXT]],
    BeforeValidator(read_content, json_schema_input_type=str | list[ChatText]),
]
UserPart = Annotated[
    Annotated[ChatText | ChatImage | ChatFile, Field(discriminator="type")],
    BeforeValidator(KnownTypes("content part", ("text", "image_url", "file"), REFUSED_PARTS)),
]
UserContent = Annotated[list[UserPart], BeforeValidator(read_content, json_schema_input_type=str | list[UserPart])]
AnswerPart = Annotated[
    Annotated[ChatText | ChatRefusal, Field(discriminator="type")],
    BeforeValidator(KnownTypes("content part", ("text", "refusal"))),
]
AnswerContent = Annotated[
    list[AnswerPart], BeforeValidator(read_content, json_schema_input_type=str | list[AnswerPart])
]


class CalledFunction(Request):
    input_fields: ClassVar[frozenset[str]] = frozenset({"parsed_arguments"})  # OpenAI's client sends what it parsed

    name: str
    arguments: str


class ChatToolCall(Request):
    """A call of a function. `arguments` is the text that the model wrote. Calls from a stream have an `index`."""

    input_fields: ClassVar[frozenset[str]] = frozenset({"index"})

    id: str
    type: Literal["function"] = "function"
    function: CalledFunction


ChatToolCallInput = Annotated[
    ChatToolCall, BeforeValidator(KnownTypes("tool call", ("function",), {"custom": REFUSED_TOOLS["custom"]}))
]


class ChatSystemMessage(Request):
    role: Literal["system", "developer"]
    content: TextContent
    name: Name = None


class ChatUserMessage(Request):
    role: Literal["user"]
    content: UserContent
    name: Name = None


class ChatAssistantMessage(Request):
    """An earlier answer. It has content, a refusal or tool calls, and may have `reasoning_content`.

    Clients send it back as it was returned, with `annotations`, and OpenAI's client with what it `parsed`.
    """

    input_fields: ClassVar[frozenset[str]] = frozenset({"annotations", "parsed"})

    role: Literal["assistant"]
    content: AnswerContent = Field(default_factory=list)
    reasoning_content: Omitted[str] = None
    refusal: Omitted[str] = None
    tool_calls: list[ChatToolCallInput] = Field(default_factory=list)
    audio: Annotated[Nothing, UnsupportedField(NO_AUDIO)] = None
    function_call: Annotated[Nothing, UnsupportedField("It is deprecated. Use tool_calls")] = None
    name: Name = None


class ChatToolMessage(Request):
    """The result of an earlier call."""

    role: Literal["tool"]
    tool_call_id: str
    content: TextContent


ROLES = ("system", "developer", "user", "assistant", "tool")


def check_role(message: Any) -> Any:
    """Refuse an unsupported role by its name."""
    if isinstance(message, dict) and message.get("role") not in ROLES:
        role = message.get("role")
        if role == "function":
            raise invalid("The role function is deprecated and not supported: send a message of role tool.")
        raise invalid(f"The role of a message must be one of {', '.join(ROLES)}.")
    return message


ChatMessage = Annotated[
    Annotated[
        ChatSystemMessage | ChatUserMessage | ChatAssistantMessage | ChatToolMessage, Field(discriminator="role")
    ],
    BeforeValidator(check_role),
]


class ChatFunction(Request):
    """A function that the client runs. `parameters` is a JSON schema of type object."""

    name: ToolName
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: StrictBool | None = None


class ChatFunctionTool(Request):
    type: Literal["function"] = "function"
    function: ChatFunction


ChatTool = Annotated[
    ChatFunctionTool, BeforeValidator(KnownTypes("tool", ("function",), {"custom": REFUSED_TOOLS["custom"]}))
]


class ChosenFunction(Request):
    name: str


class ChatFunctionChoice(Request):
    """The model must call this function."""

    type: Literal["function"] = "function"
    function: ChosenFunction


class ChatAllowedTools(Request):
    mode: Literal["auto", "required"] = "auto"
    tools: Annotated[list[ChatFunctionChoice], Field(min_length=1, max_length=128)]


class ChatAllowedToolsChoice(Request):
    """The model sees all functions, and may call only these."""

    type: Literal["allowed_tools"] = "allowed_tools"
    allowed_tools: ChatAllowedTools
