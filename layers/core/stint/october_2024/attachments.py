"""Conversion of attachments of October 2024: images become parts of the user's message, others documents.

An image reaches the model only in a message, so the user's last one gets them all. The conversion moves attachments to
other places, and errors of a turn name the places it knows: `documents[1]`, `messages[0].content[2]`. They are changed
back, so that a caller reads the name of the attachment that was sent.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from stint.dataclasses import dataclass
from stint.domain.content import ContentItem, Document, ImageContentItem, TextContentItem, items_of
from stint.domain.errors import InvalidRequest
from stint.domain.messages import InputMessage, UserMessage
from stint.october_2024.contents import read_source, to_item, to_messages
from stint.october_2024.schemas.messages import OctoberImage
from stint.october_2024.schemas.turns import OctoberAttachment, OctoberTurnCreateRequest

DOCUMENT = re.compile(r"documents\[(\d{1,9})\]")
PLACE = re.compile(r"messages\[(\d{1,9})\]\.content(?:\[(\d{1,9})\])?")


@dataclass(frozen=True, slots=True)
class AttachedImage:
    """An image, and its place in the attachments."""

    place: str
    item: ImageContentItem


def to_documents(attachments: Sequence[OctoberAttachment]) -> list[Document]:
    """Convert attachments but for their images."""
    return [document for _, document in placed_documents(attachments)]


def placed_documents(attachments: Sequence[OctoberAttachment]) -> Iterator[tuple[int, Document]]:
    """Yield the documents of attachments with the attachments' places. Texts beside an image are plain."""
    for place, attachment in enumerate(attachments):
        content, mime_type = attachment.content, attachment.mime_type
        if isinstance(content, OctoberImage):
            continue
        if isinstance(content, list) and any(isinstance(part, OctoberImage) for part in content):
            content, mime_type = [part for part in content if isinstance(part, str)], "text/plain"
            if not content:
                continue
        yield place, Document(content=read_source(content), mime_type=mime_type)


def find_images(attachments: Sequence[OctoberAttachment]) -> list[AttachedImage]:
    """Return the images of attachments."""
    found = []
    for place, attachment in enumerate(attachments):
        parts = attachment.content if isinstance(attachment.content, list) else [attachment.content]
        for index, part in enumerate(parts):
            if isinstance(part, OctoberImage) and isinstance(item := to_item(part), ImageContentItem):
                where = f"[{index}]" if parts is attachment.content else ""
                found.append(AttachedImage(f"attachments[{place}].content{where}", item))
    return found


def add_images(messages: Sequence[InputMessage], images: Sequence[AttachedImage]) -> list[InputMessage]:
    """Return the messages, of which the last one of the user has the images, too.

    Raises InvalidRequest if the user says nothing.
    """
    if not images:
        return [*messages]
    last = last_of_user(messages)
    if last is None:
        problem = "an image needs a message of the role user in messages"
        raise InvalidRequest(f"{images[0].place}: {problem}.", param=images[0].place)
    place, message = last
    parts = [*own_parts(message), *(each.item for each in images)]
    return [*messages[:place], message.model_copy(update={"content": parts}), *messages[place + 1 :]]


def last_of_user(messages: Sequence[InputMessage]) -> tuple[int, UserMessage] | None:
    """Return the last message of the user, and its place."""
    found = [(place, each) for place, each in enumerate(messages) if isinstance(each, UserMessage)]
    return found[-1] if found else None


def own_parts(message: UserMessage) -> list[ContentItem]:
    """Return the parts of a message to which images are added. There is no empty text, which providers refuse."""
    return [each for each in items_of(message.content) if not isinstance(each, TextContentItem) or each.text]


@contextmanager
def named_attachments(request: OctoberTurnCreateRequest) -> Iterator[None]:
    """Call documents and added images of a turn attachments in errors of the caller, as the request did."""
    try:
        yield
    except InvalidRequest as error:
        if error.param and (found := DOCUMENT.match(error.param)):
            place, _ = [*placed_documents(request.attachments)][int(found[1])]
            rename(error, found[0], f"attachments[{place}]")
        elif error.param and (found := PLACE.match(error.param)) and (image := attached_place(request, found)):
            rename(error, found[0], image)
        raise


def rename(error: InvalidRequest, before: str, after: str) -> None:
    error.param = (error.param or "").replace(before, after, 1)
    error.message = error.message.replace(before, after, 1)


def attached_place(request: OctoberTurnCreateRequest, found: re.Match[str]) -> str | None:
    """Return the place in the attachments of a part of a message that was added to it."""
    images, last = find_images(request.attachments), last_of_user(to_messages(request.messages))
    if last is None or last[0] != int(found[1]) or found[2] is None:
        return None
    place = int(found[2]) - len(own_parts(last[1]))
    return images[place].place if 0 <= place < len(images) else None
