"""The input of a run: `RunAgentInput` of AG-UI 1.0.

Clients send the whole conversation with each run, and the record of the server counts, so most messages are read by
their id and role alone. The content of a message is checked when the message is taken: a client that has once sent a
part that is not supported could otherwise never use its thread again.
"""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Discriminator, Field, Tag
from pydantic.alias_generators import to_camel

from stint.domain.fields import LONG_TEXT, KnownTypes, invalid
from stint.domain.limits import MAX_APPROVED_CALLS, MAX_TOOLS, MessageLimit, PartLimit, check_size, size_of_json
from stint.domain.openai.parts import MAX_IMAGE
from stint.domain.schema import Request
from stint.domain.session_budgets import SessionBudget

LONGEST_ID = 512
"""Maximum characters of the ids that clients choose."""

MAX_STATE_BYTES, MAX_CONTEXT_BYTES = 262_144, 65_536
"""Maximum bytes of JSON of the state, and of all items of the context."""

MAX_CONTEXT_ITEMS = 128

ChosenId = Annotated[str, Field(min_length=1, max_length=LONGEST_ID)]


class CamelCaseRequest(Request):
    """An object whose fields are in camel case."""

    model_config = ConfigDict(
        alias_generator=to_camel, validate_by_name=True, validate_by_alias=True, serialize_by_alias=True
    )


class FrontendTool(Request):
    """A tool that the frontend runs. The run ends when the model calls it."""

    name: str
    description: str = ""
    parameters: dict[str, Any] | None = None
    input_fields: ClassVar[frozenset[str]] = frozenset({"metadata"})


class ContextItem(Request):
    """A piece of information about the application, which the model gets with the user's next message."""

    description: str
    value: str


class RunMessage(CamelCaseRequest):
    """A message of the conversation, as the client has it."""

    input_fields: ClassVar[frozenset[str]] = frozenset(
        {"content", "name", "encryptedValue", "metadata", "subagentRunId", "toolCalls", "activityType", "error"}
    )

    id: ChosenId
    role: Literal["user", "tool", "assistant", "system", "developer", "activity", "reasoning"]


class IgnoredMessage(RunMessage):
    """A message that no run takes."""

    role: Literal["assistant", "system", "developer", "activity", "reasoning"]


class GivenMessage(RunMessage):
    """A message of the user. Its content is checked when it is taken."""

    role: Literal["user"]
    content: Any


class GivenResult(RunMessage):
    """The result of a tool that the frontend has run, which may be an `error`."""

    role: Literal["tool"]
    tool_call_id: str
    content: Any = None
    error: str | None = None


def form_of_message(value: Any) -> str:
    role = value.get("role") if isinstance(value, dict) else None
    return role if role in ("user", "tool") else "other"


AnyMessage = Annotated[
    Annotated[GivenMessage, Tag("user")]
    | Annotated[GivenResult, Tag("tool")]
    | Annotated[IgnoredMessage, Tag("other")],
    Discriminator(form_of_message),
]


class ResumeEntry(CamelCaseRequest):
    """An answer to an interrupt: whether the call that it names is approved."""

    input_fields: ClassVar[frozenset[str]] = frozenset({"metadata"})

    interrupt_id: str
    status: Literal["resolved", "cancelled"]
    payload: Any = None


class ForwardedProps(Request):
    """Values of the application. The session that the run creates gets the budget; all others are ignored."""

    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True, serialize_by_alias=True)

    budget: Annotated[SessionBudget | None, Field(alias="stint/budget")] = None


def only_objects(value: Any) -> Any:
    """Return an object with what this server reads of it. Any other value has nothing for it."""
    return {name: value[name] for name in ("stint/budget",) if name in value} if isinstance(value, dict) else None


def limit_state(value: Any) -> Any:
    check_size({"state": value}, "state", MAX_STATE_BYTES)
    return value


def limit_context(items: list[ContextItem]) -> list[ContextItem]:
    size = size_of_json([item.model_dump() for item in items])
    if size > MAX_CONTEXT_BYTES:
        raise invalid(f"The context has {size:,} bytes of JSON; at most {MAX_CONTEXT_BYTES:,} are allowed.")
    return items


class RunInput(CamelCaseRequest):
    """A request to run an agent.

    Of the messages, those of the user and the results of tools that are new are taken; see docs/protocols.md.
    """

    input_fields: ClassVar[frozenset[str]] = frozenset({"protocolVersion", "parentRunId"})

    thread_id: ChosenId
    run_id: ChosenId
    messages: Annotated[list[AnyMessage], MessageLimit, PartLimit]
    tools: Annotated[list[FrontendTool], Field(max_length=MAX_TOOLS)] | None = None
    context: Annotated[list[ContextItem], Field(max_length=MAX_CONTEXT_ITEMS), AfterValidator(limit_context)] | None = (
        None
    )
    state: Annotated[Any, AfterValidator(limit_state)] = None
    forwarded_props: Annotated[ForwardedProps | None, BeforeValidator(only_objects)] = None
    resume: Annotated[list[ResumeEntry], Field(max_length=MAX_APPROVED_CALLS)] | None = None


LongText = Annotated[str, Field(max_length=LONG_TEXT)]
ImageText = Annotated[str, Field(min_length=1, max_length=MAX_IMAGE)]


class PartSource(CamelCaseRequest):
    """Where an image comes from."""

    type: Literal["data", "url"]
    value: ImageText
    mime_type: str | None = None


class GivenText(Request):
    """A text of a message."""

    type: Literal["text"]
    text: LongText


class GivenImage(Request):
    """An image of a message."""

    type: Literal["image"]
    source: PartSource


class BinaryPart(CamelCaseRequest):
    """An image in the form of clients before 1.0: base64 `data`, or a `url`."""

    type: Literal["binary"]
    mime_type: str
    data: ImageText | None = None
    url: ImageText | None = None


REFUSED_PARTS = {
    "audio": "no provider supports audio",
    "video": "no provider supports video",
    "document": "put the document into a vector store, and give the agent the tool file_search",
}
GivenPart = Annotated[
    Annotated[GivenText | GivenImage | BinaryPart, Field(discriminator="type")],
    BeforeValidator(KnownTypes("content part", ("text", "image", "binary"), REFUSED_PARTS)),
]


def form_of_content(value: Any) -> str:
    return "text" if isinstance(value, str) else "parts"


class GivenContent(Request):
    """The content of a message that is taken."""

    content: Annotated[
        Annotated[LongText, Tag("text")] | Annotated[list[GivenPart], Field(min_length=1), Tag("parts")],
        Discriminator(form_of_content),
    ]
