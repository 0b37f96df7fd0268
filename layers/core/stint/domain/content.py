"""Message content: texts and images, alone or mixed."""

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
            raise ValueError("an image needs either url or data, not both")
        return self


class DetailedImage(ImageSource):
    """An image with a hint about its detail, as in chat completions."""

    detail: Literal["low", "high"]


IMAGE_TYPES = {"/9j/": "jpeg", "R0lG": "gif", "UklG": "webp"}
"""Types of images by the beginning of their base64. Others are PNGs."""


def url_of(image: ImageSource) -> str:
    """Return the URL of an image. That of base64 is a data URL, of the type that its first bytes show."""
    if image.url is not None:
        return image.url.uri
    encoded = image.data or ""
    kind = next((kind for start, kind in IMAGE_TYPES.items() if encoded.startswith(start)), "png")
    return f"data:image/{kind};base64,{encoded}"


def image_at(url: str, detail: Literal["low", "high", "auto"]) -> ImageSource:
    """Return an image by its URL (http, https or data). The detail `auto` is the model's default."""
    if detail == "auto":
        return ImageSource(url=URL(uri=url))
    return DetailedImage(url=URL(uri=url), detail=detail)


class ImageContentItem(Schema):
    type: Literal["image"] = "image"
    image: ImageSource


ContentItem = Annotated[TextContentItem | ImageContentItem, Field(discriminator="type")]
Content = str | ContentItem | list[ContentItem]


def items_of(content: Content) -> list[TextContentItem | ImageContentItem]:
    """Return content as a list of items."""
    if isinstance(content, str):
        return [TextContentItem(text=content)]
    return content if isinstance(content, list) else [content]


def text_of(content: Content) -> str:
    """Join the texts of a content, without its images."""
    if isinstance(content, str):
        return content
    return "\n".join(item.text for item in items_of(content) if isinstance(item, TextContentItem))


class Document(Request):
    """A document that is sent with the messages of a turn."""

    content: Content | URL
    mime_type: str


class DocumentText(Schema):
    """A document's text for the model. It is fetched and converted once, when its turn starts."""

    text: str
    mime_type: str


class StoredResult(Schema):
    """A result that is not plain text, in the form in which the blob store has it."""

    content: Content
