"""Conversion of the content of items to that of the model's messages."""

from collections.abc import Iterable, Iterator

from stint.documents.marker import mark_document
from stint.domain.content import Content, ContentItem, ImageContentItem, TextContentItem, image_at
from stint.domain.openai.parts import InputFile, InputImage, InputText, MessagePart, OutputText, RefusalPart


def message_text(parts: Iterable[MessagePart]) -> str:
    """Return the text of a message that is not the user's."""
    return "\n".join(text_of_part(part) for part in parts)


def content_of(parts: Iterable[MessagePart], texts: Iterator[str]) -> Content:
    items = [content_item_of(part, texts) for part in parts]
    first = items[0] if len(items) == 1 else None
    return first.text if isinstance(first, TextContentItem) else items


def content_item_of(part: MessagePart, texts: Iterator[str]) -> ContentItem:
    match part:
        case InputImage(image_url=url, detail=detail):
            return ImageContentItem(image=image_at(next(texts) if url is None else url, detail))
        case InputFile():
            name = f"File {part.filename}:\n" if part.filename else ""
            return TextContentItem(text=name + mark_document(next(texts), ""))
        case _:
            return TextContentItem(text=text_of_part(part))


def text_of_part(part: MessagePart) -> str:
    match part:
        case InputText() | OutputText():
            return part.text
        case RefusalPart():
            return part.refusal
        case _:
            return ""
