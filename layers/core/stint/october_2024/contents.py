"""Conversion of contents and messages between the API of October 2024 and that of 0.2.12.

An image is a URL or base64 in both, at other places of the object. A result of a tool has the tool's name in October
2024 and only the id of its call in 0.2.12, so the names come from the calls of the turns before.
"""

from collections.abc import Mapping, Sequence

from stint.domain.content import (
    URL,
    Content,
    ImageContentItem,
    ImageSource,
    TextContentItem,
    items_of,
    url_of,
)
from stint.domain.messages import InputMessage, UserMessage
from stint.domain.tools import ToolCall, ToolResponseMessage
from stint.october_2024.schemas.messages import (
    OctoberContent,
    OctoberImage,
    OctoberPart,
    OctoberToolCall,
    OctoberToolMessage,
    OctoberTurnMessage,
    OctoberUserMessage,
)

ADDRESSES = ("http://", "https://", "data:", "file://")
"""Beginnings of a text that is the URL of a document."""


def to_content(content: OctoberContent) -> Content:
    """Convert a content of October 2024."""
    if isinstance(content, list):
        return [to_item(part) for part in content]
    return content if isinstance(content, str) else to_item(content)


def to_item(part: OctoberPart) -> TextContentItem | ImageContentItem:
    if isinstance(part, str):
        return TextContentItem(text=part)
    return ImageContentItem(image=ImageSource(url=part.image))


def from_content(content: Content) -> OctoberContent:
    """Convert a content to that of October 2024. Images without a URL get a data URL."""
    if isinstance(content, str):
        return content
    parts = [from_item(item) for item in items_of(content)]
    return parts if isinstance(content, list) else parts[0]


def from_item(item: TextContentItem | ImageContentItem) -> OctoberPart:
    if isinstance(item, TextContentItem):
        return item.text
    return OctoberImage(image=URL(uri=url_of(item.image)))


def read_source(content: OctoberContent | URL) -> Content | URL:
    """Convert the content of a document, whose text may be a URL."""
    if isinstance(content, URL):
        return content
    if isinstance(content, str) and content.startswith(ADDRESSES):
        return URL(uri=content)
    return to_content(content)


def to_messages(messages: Sequence[OctoberTurnMessage]) -> list[InputMessage]:
    """Convert the messages of a turn."""
    return [to_message(message) for message in messages]


def to_message(message: OctoberTurnMessage) -> InputMessage:
    if isinstance(message, OctoberToolMessage):
        return ToolResponseMessage(
            call_id=message.call_id, tool_name=message.tool_name, content=to_content(message.content)
        )
    return to_user_message(message)


def to_user_message(message: OctoberUserMessage) -> UserMessage:
    """Convert a user message. The context becomes a part of the content, because the model sees it."""
    content = to_content(message.content)
    if not message.context:
        return UserMessage(content=content)
    context = to_content(message.context)
    if isinstance(content, str) and isinstance(context, str):
        return UserMessage(content=f"{content}\n\n{context}")
    return UserMessage(content=[*items_of(content), *items_of(context)])


def from_message(message: InputMessage, tools: Mapping[str, str]) -> OctoberTurnMessage:
    """Convert a stored message. `tools` has the names of tools by the ids of their calls."""
    if isinstance(message, ToolResponseMessage):
        name = message.tool_name or tools.get(message.call_id, "")
        return OctoberToolMessage(call_id=message.call_id, tool_name=name, content=from_content(message.content))
    context = None if message.context is None else from_content(message.context)
    return OctoberUserMessage(content=from_content(message.content), context=context)


def from_call(call: ToolCall) -> OctoberToolCall:
    """Convert a tool call. Arguments that are not a JSON object are left out."""
    arguments = call.arguments if isinstance(call.arguments, dict) else {}
    return OctoberToolCall(call_id=call.call_id, tool_name=call.tool_name, arguments=arguments)
