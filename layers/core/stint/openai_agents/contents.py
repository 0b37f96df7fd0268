"""Conversion of the contents of OpenAI's Agents API to those of messages, and back."""

from collections.abc import Iterable, Iterator, Sequence

from stint.documents.document_reader import PlacedImage
from stint.domain.content import Content, ContentItem, ImageContentItem, TextContentItem, image_at, items_of, url_of
from stint.domain.messages import UserMessage
from stint.openai_agents.schemas.contents import AgentInputImage, AgentInputMessage, AgentInputText
from stint.openai_agents.schemas.sessions import MessageEvent, PostedEvent, ToolResultEvent

InputParts = Sequence[AgentInputText | AgentInputImage]


def to_messages(messages: Iterable[AgentInputMessage]) -> list[UserMessage]:
    """Convert the messages of an input to those of a turn."""
    return [UserMessage(content=to_content(message.content)) for message in messages]


def to_content(output: str | InputParts) -> Content:
    """Convert the content of a message, or the result of a function. A single text is a string."""
    if isinstance(output, str):
        return output
    items: list[ContentItem] = [to_item(part) for part in output]
    first = items[0] if len(items) == 1 else None
    return first.text if isinstance(first, TextContentItem) else items


def to_item(part: AgentInputText | AgentInputImage) -> ContentItem:
    if isinstance(part, AgentInputText):
        return TextContentItem(text=part.text)
    return ImageContentItem(image=image_at(part.image_url, "auto"))


def images_in(parts: str | InputParts | None, field: str) -> Iterator[PlacedImage]:
    """Yield the images of a field, with locations such as `input[0].content[1].image_url`."""
    for index, part in enumerate(() if parts is None or isinstance(parts, str) else parts):
        if isinstance(part, AgentInputImage):
            yield f"{field}[{index}].image_url", image_at(part.image_url, "auto")


def images_of_messages(messages: str | Iterable[AgentInputMessage] | None, field: str) -> Iterator[PlacedImage]:
    """Yield the images of an input, with their locations."""
    for index, message in enumerate(() if messages is None or isinstance(messages, str) else messages):
        yield from images_in(message.content, f"{field}[{index}].content")


def images_of_events(events: Iterable[PostedEvent]) -> Iterator[PlacedImage]:
    """Yield the images of messages and results, with their locations."""
    for index, event in enumerate(events):
        if isinstance(event, MessageEvent):
            yield from images_of_messages(event.input, f"events[{index}].input")
        elif isinstance(event, ToolResultEvent):
            yield from images_in(event.output, f"events[{index}].output")


def from_content(content: Content) -> list[AgentInputText | AgentInputImage]:
    """Convert the content of a stored message to parts. Images without a URL get a data URL."""
    return [
        AgentInputText(text=item.text)
        if isinstance(item, TextContentItem)
        else AgentInputImage.model_construct(type="input_image", image_url=url_of(item.image))
        for item in items_of(content)
    ]


def from_result(content: Content) -> str | list[AgentInputText | AgentInputImage]:
    """Convert the stored result of a tool: a string stays one."""
    return content if isinstance(content, str) else from_content(content)
