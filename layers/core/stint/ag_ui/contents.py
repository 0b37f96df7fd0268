"""Conversion of contents of AG-UI's messages to those of turns, and back.

    of AG-UI                                    of a turn
    text                                        text
    image by URL or by base64; `binary`         image; base64 becomes a data URL
    any other media type                        refused: a turn has no field for it beside text and images
    the error of a frontend tool                the result that the model reads

An error names the place in the request (`messages[2].content[1]`), because clients send the whole conversation. Images
are returned with their places, so that they are checked before anything is stored.
"""

import json
from collections.abc import Iterator

from pydantic import ValidationError

from stint.ag_ui.schemas.inputs import BinaryPart, GivenContent, GivenImage, GivenMessage, GivenResult, GivenText
from stint.ag_ui.schemas.messages import DataSource, ImagePart, MessageContent, TextPart, UrlSource
from stint.documents.document_reader import PlacedImage
from stint.domain.content import (
    Content,
    ContentItem,
    ImageContentItem,
    TextContentItem,
    image_at,
    items_of,
    text_of,
    url_of,
)
from stint.domain.errors import InvalidRequest
from stint.domain.tools import ToolCall
from stint.domain.validation import message_of

NO_RESULT = "The tool failed without a message."


def read_content(message: GivenMessage | GivenResult, place: str) -> Content:
    """Return the content of a message at a place of the request. Raises InvalidRequest."""
    try:
        given = GivenContent.model_validate({"content": message.content}).content
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]
        where = "".join(f"[{part}]" for part in problem["loc"] if isinstance(part, int))
        param = f"{place}.content{where}"
        raise InvalidRequest(f"{param}: {message_of(problem)}", param=param) from None
    if isinstance(given, str):
        return given
    return [read_part(part, f"{place}.content[{index}]") for index, part in enumerate(given)]


def read_part(part: GivenText | GivenImage | BinaryPart, place: str) -> ContentItem:
    """Convert a part. Raises InvalidRequest."""
    if isinstance(part, GivenText):
        return TextContentItem(text=part.text)
    return ImageContentItem(image=image_at(find_url(part, place), "auto"))


def find_url(part: GivenImage | BinaryPart, place: str) -> str:
    """Return the URL of an image; base64 becomes a data URL. Raises InvalidRequest."""
    if isinstance(part, GivenImage):
        source = part.source
        if source.type == "url":
            return source.value
        kind, data = source.mime_type, source.value
    else:
        if part.url is not None and part.data is None:
            return part.url
        kind, data = part.mime_type, part.data or ""
    if kind is None or not kind.startswith("image/"):
        raise InvalidRequest(f"{place}: only images are supported; set mimeType to image/...", param=place)
    return f"data:{kind};base64,{data}"


def read_result(message: GivenResult, place: str) -> Content:
    """Return the result of a tool for the model: that of a failed one is its error. Raises InvalidRequest."""
    if message.error:
        return message.error
    return NO_RESULT if message.content is None else read_content(message, place)


def images_of(content: Content, place: str) -> Iterator[PlacedImage]:
    """Yield the images of a content, with their places in the request."""
    for index, item in enumerate(items_of(content)):
        if isinstance(item, ImageContentItem):
            yield f"{place}.content[{index}]", item.image


def show_content(content: Content) -> MessageContent:
    """Convert a stored content. Texts alone are one text."""
    items = items_of(content)
    if not any(isinstance(item, ImageContentItem) for item in items) and not isinstance(content, list):
        return text_of(content)
    return [TextPart(text=item.text) if isinstance(item, TextContentItem) else show_image(item) for item in items]


def show_image(item: ImageContentItem) -> ImagePart:
    url = url_of(item.image)
    head, comma, data = url.partition(";base64,")
    if comma and head.startswith("data:"):
        return ImagePart(source=DataSource(value=data, mime_type=head.removeprefix("data:")))
    return ImagePart(source=UrlSource(value=url))


def show_arguments(call: ToolCall) -> str:
    """Return the arguments of a call as text."""
    if isinstance(call.arguments, str):
        return call.arguments
    return call.arguments_json or json.dumps(call.arguments)


def show_result(content: Content) -> MessageContent:
    """Convert the result of a tool. A stored empty list is an empty text."""
    return show_content(content) or ""
