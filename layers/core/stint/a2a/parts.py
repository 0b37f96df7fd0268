"""Parts of A2A as the input of a turn, and contents of turns as parts.

    a part                          becomes
    text                            text of the message
    data                            the same, as JSON
    raw or url of an image          an image of the message
    raw or url of anything else     a document of the turn

Images and documents have the limits, and their URLs the guard, of all other APIs (`DocumentReader`).
"""

import base64
import json
import mimetypes
import re
from binascii import Error
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from stint.a2a.errors import CONTENT_TYPE_NOT_SUPPORTED, SHOWN_CHARACTERS
from stint.a2a.schemas import A2APart, SentPart
from stint.dataclasses import dataclass
from stint.documents.mime_types import GENERIC, type_of_name
from stint.domain.content import (
    URL,
    Content,
    ContentItem,
    Document,
    ImageContentItem,
    ImageSource,
    TextContentItem,
    items_of,
    url_of,
)
from stint.domain.errors import InvalidRequest
from stint.domain.llama_stack.turns import Attachment
from stint.domain.messages import UserMessage

IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
INPUT_MODES = ("text/plain", "application/json", *sorted(IMAGES), "application/pdf", "text/markdown", "text/html")
"""The media types of parts in the card. Other texts are read, too."""

OUTPUT_MODES = ("text/plain", "application/json", "image/png", "application/octet-stream")
ITEM = re.compile(r"messages\[0\]\.content\[(\d{1,4})\](?:\.image)?(?:\.url)?(?:\.uri|\.data)?")
FILE = re.compile(r"documents\[(\d{1,4})\](?:\.content)?(?:\.uri)?")
"""Where an error of a turn finds an item of its message, or a document."""

SOURCES = ("text", "raw", "url", "data")
SCHEMES = ("http", "https", "data")


@dataclass(frozen=True, slots=True)
class TurnInput:
    """The input of a turn that a message makes.

    `images` and `files` have the places in the request of the message's items, and of its documents.
    """

    messages: list[UserMessage]
    documents: list[Document]
    images: Sequence[str] = ()
    files: Sequence[str] = ()


def to_input(parts: Sequence[SentPart]) -> TurnInput:
    """Return the input of a turn for the parts of a message. Raises InvalidRequest, which names the part."""
    items: list[ContentItem] = []
    documents: list[Document] = []
    images: list[str] = []
    files: list[str] = []
    for index, part in enumerate(parts):
        place = f"message.parts[{index}]"
        converted, field = to_item(part, place), f"{place}.{source_of(part, place)}"
        if isinstance(converted, Document):
            documents.append(converted)
            files.append(field)
        else:
            items.append(converted)
            images.append(field)
    first = items[0] if len(items) == 1 else None
    content: Content = first.text if isinstance(first, TextContentItem) else items
    return TurnInput([UserMessage(content=content)], documents, images, files)


@contextmanager
def naming_parts(given: TurnInput) -> Iterator[None]:
    """Name the parts of the message in errors of the caller, in place of the turn's items and documents."""
    try:
        yield
    except InvalidRequest as error:
        for pattern, places in ((ITEM, given.images), (FILE, given.files)):
            found = pattern.match(error.param or "")
            if found is not None and int(found[1]) < len(places):
                place = places[int(found[1])]
                error.message, error.param = error.message.replace(found[0], place, 1), place
                break
        raise


def to_item(part: SentPart, place: str) -> TextContentItem | ImageContentItem | Document:
    """Convert a part at a place of the request. Raises InvalidRequest."""
    source = source_of(part, place)
    if part.text is not None:
        return TextContentItem(text=part.text)
    if source == "data":
        return TextContentItem(text=json.dumps(part.data, ensure_ascii=False))
    media_type = media_type_of(part)
    if part.raw is not None:
        return to_file(normal_base64(part.raw, place), media_type, place)
    return to_linked(part.url or "", media_type, place)


def source_of(part: SentPart, place: str) -> str:
    """Return the field that has the content of a part. Raises InvalidRequest unless it is exactly one."""
    found = [name for name in SOURCES if getattr(part, name) is not None]
    if not found and "data" in part.model_fields_set:  # null is a value of JSON
        return "data"
    if len(found) != 1:
        has = " and ".join(found) or "no content"
        message = f"{place} has {has}. A part has exactly one of text, raw, url and data."
        raise InvalidRequest(message, param=place)
    return found[0]


def media_type_of(part: SentPart) -> str:
    """Return the media type of a file in lower case without parameters: its own, or that of its name."""
    own = part.media_type.partition(";")[0].strip().lower()
    if own not in GENERIC:
        return own
    name = part.filename or urlsplit_path(part.url or "")
    return type_of_name(name) or mimetypes.guess_type(name)[0] or own


def urlsplit_path(url: str) -> str:
    try:
        return urlsplit(url).path
    except ValueError:
        return ""


def normal_base64(text: str, place: str) -> str:
    """Return base64 of the standard alphabet with its padding, for that of URLs, too. Raises InvalidRequest."""
    try:
        padded = text.rstrip("=").translate({45: "+", 95: "/"})
        padded += "=" * (-len(padded) % 4)
        base64.b64decode(padded, validate=True)
    except (Error, ValueError):
        raise InvalidRequest(f"{place}.raw is not base64.", param=f"{place}.raw") from None
    return padded


def to_file(encoded: str, media_type: str, place: str) -> ImageContentItem | Document:
    if media_type in IMAGES:
        return ImageContentItem(image=ImageSource(data=encoded))
    refuse_type(media_type, place, of_bytes=True)
    return Document(content=URL(uri=f"data:{media_type};base64,{encoded}"), mime_type=media_type)


def to_linked(url: str, media_type: str, place: str) -> ImageContentItem | Document:
    if url.partition(":")[0].lower() not in SCHEMES:
        raise InvalidRequest(f"{place}.url must be a URL of http, https or data.", param=f"{place}.url")
    if media_type in IMAGES:
        return ImageContentItem(image=ImageSource(url=URL(uri=url)))
    refuse_type(media_type, place, of_bytes=False)
    return Document(content=URL(uri=url), mime_type=media_type)


def refuse_type(media_type: str, place: str, *, of_bytes: bool) -> None:
    """Refuse media types of which no agent reads anything. Raises InvalidRequest.

    The type of a URL without one is that of its server.
    """
    if of_bytes and media_type in GENERIC:
        message = f"{place} has bytes of an unknown type. Set mediaType, or a filename with an extension."
        raise InvalidRequest(message, code=CONTENT_TYPE_NOT_SUPPORTED, param=f"{place}.mediaType")
    if media_type.partition("/")[0] in ("image", "audio", "video", "font", "model", "multipart"):
        shown = media_type[:SHOWN_CHARACTERS]
        known = ", ".join(sorted(IMAGES))
        message = f"{place} has the media type {shown!r}, which agents cannot read. Images are {known}."
        raise InvalidRequest(message, code=CONTENT_TYPE_NOT_SUPPORTED, param=f"{place}.mediaType")


def from_content(content: Content) -> list[A2APart]:
    """Return the parts of a stored content, at least one."""
    return [from_item(item) for item in items_of(content)] or [A2APart(text="")]


def from_item(item: TextContentItem | ImageContentItem) -> A2APart:
    if isinstance(item, TextContentItem):
        return A2APart(text=item.text)
    return from_url(url_of(item.image), "")


def from_attachment(attachment: Attachment) -> A2APart:
    """Return a file that a tool produced."""
    content = attachment.content
    if isinstance(content, URL):
        return from_url(content.uri, attachment.mime_type)
    part = from_content(content)[0]
    return part.model_copy(update={"media_type": attachment.mime_type})


def from_url(url: str, media_type: str) -> A2APart:
    """Return a part with the bytes of a data URL, or with another URL."""
    head, comma, encoded = url.partition(",")
    if comma and head[:5].lower() == "data:" and head.lower().endswith(";base64"):
        return A2APart(raw=encoded, media_type=media_type or head[5:].partition(";")[0])
    return A2APart(url=url, media_type=media_type or None)


def check_modes(accepted: Iterable[str]) -> None:
    """Refuse a caller who accepts nothing that agents make. Raises InvalidRequest."""
    wanted = [mode.partition(";")[0].strip().lower() for mode in accepted]
    if not wanted or any(accepts(mode) for mode in wanted):
        return
    message = f"The agent answers with {', '.join(OUTPUT_MODES)}. Add one of them to acceptedOutputModes, or omit it."
    raise InvalidRequest(message, code=CONTENT_TYPE_NOT_SUPPORTED, param="configuration.acceptedOutputModes")


def accepts(mode: str) -> bool:
    """Return whether a media type, or a range of them, has one of the agent's. `text` means text/plain."""
    kind, _, name = mode.partition("/")
    if mode in ("*/*", "*", "text", *OUTPUT_MODES):
        return True
    return name == "*" and any(each.startswith(f"{kind}/") for each in OUTPUT_MODES)


def whole_numbers(value: Any) -> Any:
    """Return a value with integers for whole numbers: protocol buffers know only floats in data and metadata."""
    if isinstance(value, dict):
        return {name: whole_numbers(each) for name, each in value.items()}
    if isinstance(value, list):
        return [whole_numbers(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
