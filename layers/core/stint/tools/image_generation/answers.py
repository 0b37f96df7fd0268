"""Reading of images in the answers of providers."""

import base64
import binascii

from stint.domain.errors import InvalidRequest, ModelError
from stint.tools.image_generation.port import MAX_IMAGE_BYTES
from stint.tools.outcomes import IMAGE_SIGNATURES

NO_IMAGE = "The provider of the image model sent no image."


def read_base64(encoded: object) -> bytes:
    """Return an image from its base64. Raises ModelError or InvalidRequest as `check_image`."""
    if not isinstance(encoded, str):
        raise ModelError(NO_IMAGE)
    refuse_large(len(encoded) * 3 // 4)
    try:
        return check_image(base64.b64decode(encoded, validate=True))
    except binascii.Error as error:
        raise ModelError(NO_IMAGE) from error


def check_image(data: bytes) -> bytes:
    """Return the bytes of an image.

    Raises:
        InvalidRequest: it is too large.
        ModelError: it is no PNG, JPEG, GIF or WebP.
    """
    refuse_large(len(data))
    if not data.startswith(IMAGE_SIGNATURES) and (data[:4], data[8:12]) != (b"RIFF", b"WEBP"):
        raise ModelError(NO_IMAGE)
    return data


def refuse_large(size: int) -> None:
    if size > MAX_IMAGE_BYTES + 2:
        raise InvalidRequest(
            f"The image has {size} bytes; at most {MAX_IMAGE_BYTES} are allowed. Choose a smaller size, or another "
            "output_format."
        )
