"""Contents and messages of the API of October 2024."""

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from stint.domain.content import URL
from stint.domain.limits import MAX_MESSAGES, PartLimit
from stint.domain.schema import Request, Schema
from stint.domain.steps import StopReason


class OctoberImage(Request):
    """An image by its URL (http, https or data). The URL may also be given as a string."""

    image: URL

    @model_validator(mode="before")
    @classmethod
    def read_string(cls, data: Any) -> Any:
        if isinstance(data, dict) and isinstance(data.get("image"), str):
            return {**data, "image": {"uri": data["image"]}}
        return data


OctoberPart = str | OctoberImage
OctoberContent = str | OctoberImage | list[OctoberPart]


class OctoberToolCall(Schema):
    """A call by the model. Arguments that are no JSON object are empty."""

    call_id: str
    tool_name: str
    arguments: dict[str, Any] = Field(default_factory=dict)


class OctoberUserMessage(Request):
    """A user message. `context` follows the content after a blank line."""

    role: Literal["user"] = "user"
    content: OctoberContent
    context: OctoberContent | None = None


class OctoberSystemMessage(Request):
    role: Literal["system"]
    content: OctoberContent


class OctoberToolMessage(Request):
    """The result of a tool. An empty `call_id` is that of the open call."""

    role: Literal["ipython"] = "ipython"
    call_id: str
    tool_name: str
    content: OctoberContent


class OctoberAnswer(Schema):
    """An answer of the model."""

    role: Literal["assistant"] = "assistant"
    content: OctoberContent = ""
    stop_reason: StopReason = "end_of_turn"
    tool_calls: list[OctoberToolCall] = Field(default_factory=list)


OctoberTurnMessage = Annotated[OctoberUserMessage | OctoberToolMessage, Field(discriminator="role")]
OctoberMessage = Annotated[
    OctoberUserMessage | OctoberSystemMessage | OctoberToolMessage | OctoberAnswer, Field(discriminator="role")
]
OctoberMessages = Annotated[list[OctoberMessage], Field(min_length=1, max_length=MAX_MESSAGES), PartLimit]
