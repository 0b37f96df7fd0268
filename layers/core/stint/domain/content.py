"""Message content: text and images, alone or interleaved."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from stint.domain.schema import Request, Schema


class URL(Schema):
    uri: str


class TextContentItem(Schema):
    type: Literal["text"] = "text"
    text: str


class ImageSource(Request):
    """An image: base64 data, or a URL (http, https or data)."""

    url: URL | None = None
    data: str | None = None

    @model_validator(mode="after")
    def require_one_source(self) -> "ImageSource":
        if (self.url is None) == (self.data is None):
            raise ValueError("an image has either url or data")
        return self


class DetailedImage(ImageSource):
    """An image, and how closely the model should look at it: a hint that chat completions take."""

    detail: Literal["low", "high"]


def image_at(url: str, detail: Literal["low", "high", "auto"]) -> ImageSource:
    """Give the image behind a URL (http, https or data); `auto` is what a model does unless told."""
    if detail == "auto":
        return ImageSource(url=URL(uri=url))
    return DetailedImage(url=URL(uri=url), detail=detail)


class ImageContentItem(Schema):
    type: Literal["image"] = "image"
    image: ImageSource


ContentItem = Annotated[TextContentItem | ImageContentItem, Field(discriminator="type")]
Content = str | ContentItem | list[ContentItem]


def items_of(content: Content) -> list[TextContentItem | ImageContentItem]:
    """Give content in its general form, a list of items."""
    if isinstance(content, str):
        return [TextContentItem(text=content)]
    return content if isinstance(content, list) else [content]


def text_of(content: Content) -> str:
    """Join the texts of a content; images are left out."""
    if isinstance(content, str):
        return content
    return "\n".join(item.text for item in items_of(content) if isinstance(item, TextContentItem))


class Document(Request):
    """A document that goes with the messages of a turn."""

    content: Content | URL
    mime_type: str


class DocumentText(Schema):
    """A document as the model reads it: fetched and turned into text once, when its turn began."""

    text: str
    mime_type: str


class KeptResult(Schema):
    """A result that is not plain text, as it lies in the blob store."""

    content: Content
