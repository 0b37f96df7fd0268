"""Messages of AG-UI 1.0, as a snapshot has them."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from stint.domain.fields import Omitted
from stint.domain.schema import Schema


class WireSchema(Schema):
    """An object whose fields are in camel case."""

    model_config = ConfigDict(
        alias_generator=to_camel, validate_by_name=True, validate_by_alias=True, serialize_by_alias=True
    )


class TextPart(WireSchema):
    type: Literal["text"] = "text"
    text: str


class UrlSource(WireSchema):
    type: Literal["url"] = "url"
    value: str


class DataSource(WireSchema):
    type: Literal["data"] = "data"
    value: str
    mime_type: str


class ImagePart(WireSchema):
    type: Literal["image"] = "image"
    source: Annotated[UrlSource | DataSource, Field(discriminator="type")]


MessageContent = str | list[Annotated[TextPart | ImagePart, Field(discriminator="type")]]


class CalledTool(WireSchema):
    name: str
    arguments: str


class FunctionToolCall(WireSchema):
    id: str
    type: Literal["function"] = "function"
    function: CalledTool


class ShownUserMessage(WireSchema):
    id: str
    role: Literal["user"] = "user"
    content: MessageContent


class ShownAssistantMessage(WireSchema):
    id: str
    role: Literal["assistant"] = "assistant"
    content: Omitted[str] = None
    tool_calls: Omitted[list[FunctionToolCall]] = None


class ShownToolMessage(WireSchema):
    id: str
    role: Literal["tool"] = "tool"
    content: MessageContent
    tool_call_id: str


ShownMessage = Annotated[ShownUserMessage | ShownAssistantMessage | ShownToolMessage, Field(discriminator="role")]
