"""Images in the form that providers need: inline with a media type, or by URL."""

import base64
import binascii

from stint.dataclasses import dataclass
from stint.domain.content import ImageSource
from stint.domain.errors import InvalidRequest

SIGNATURES = ((b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF8", "image/gif"))
WHITE_SPACE = b" \t\r\n\f\v"


@dataclass(frozen=True, slots=True)
class InlineImage:
    """The bytes of an image, and its media type (image/png, image/jpeg, image/gif or image/webp)."""

    media_type: str
    data: bytes

    @property
    def data_url(self) -> str:
        return f"data:{self.media_type};base64,{base64.b64encode(self.data).decode()}"


def read_image(source: ImageSource) -> InlineImage | str:
    """Return an image's bytes, or its http(s) URL.

    The media type is detected from the bytes, because callers send base64 without one, and data URLs with a wrong one.

    Raises:
        InvalidRequest: the data is not base64 or not a supported image, or the URL has another scheme.
    """
    address = source.data if source.url is None else source.url.uri
    if address is None:
        raise InvalidRequest("An image has neither data nor a URL", param="messages")
    if address.startswith("data:"):
        header, _, encoded = address.partition(",")
        if not header.endswith(";base64"):
            raise InvalidRequest("An image's data URL must be base64: data:image/png;base64,...", param="messages")
        return _inline(encoded)
    if source.url is None:
        return _inline(address)
    if not address.startswith(("http://", "https://")):
        raise InvalidRequest(f"An image's URL must be http, https or data, not {address[:40]!r}", param="messages")
    return address


def _inline(encoded: str) -> InlineImage:
    try:
        data = base64.b64decode(encoded.encode("ascii").translate(None, WHITE_SPACE), validate=True)
    except (binascii.Error, UnicodeEncodeError) as error:
        raise InvalidRequest("An image's data is not base64", param="messages") from error
    for signature, media_type in SIGNATURES:
        if data.startswith(signature):
            return InlineImage(media_type, data)
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return InlineImage("image/webp", data)
    raise InvalidRequest("An image's data is not a PNG, JPEG, GIF or WebP", param="messages")
