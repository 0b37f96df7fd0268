"""Opaque text: what a client carries from one request to the next without reading it.

It is encoded, not encrypted and not signed: whoever holds it can read it, and can make another one. So it holds only
what its holder was, or may be, told: a model's own reasoning and signature, or a conversation in short.
"""

import base64
import binascii
import zlib
from typing import TypeVar

from pydantic import Field, ValidationError

from stint.domain.schema import Schema

S = TypeVar("S", bound=Schema)

PREFIX = "st1."
MAX_BYTES = 20_000_000
"""Bytes of JSON; more is no text of this server, but one made to fill its memory."""


class CompactedContext(Schema):
    """What a compaction item holds: a conversation in short, as its model wrote it, and what the system said in it."""

    summary: str
    instructions: list[str] = Field(default_factory=list)


def encode_opaque(document: Schema) -> str:
    """Write a document as text that is safe in a URL. `decode_opaque` reads it, given the document's class."""
    packed = zlib.compress(f"{type(document).__name__}\n{document.model_dump_json()}".encode(), 6)
    return PREFIX + base64.urlsafe_b64encode(packed).decode()


def decode_opaque(text: str, kind: type[S]) -> S:
    """Read what `encode_opaque` wrote.

    Raises:
        ValueError: the text was not made by this server, was changed on its way, or holds something else.
    """
    if not text.startswith(PREFIX):
        raise ValueError("It was not made by this server: send what this server gave, unchanged.")
    try:
        name, _, body = _unpack(text[len(PREFIX) :]).decode().partition("\n")
        if name == kind.__name__:
            return kind.model_validate_json(body)
    except (binascii.Error, zlib.error, UnicodeError, ValidationError):
        raise ValueError("It is damaged: send it back as it was given.") from None
    raise ValueError("It belongs to an item of another type.")


def _unpack(text: str) -> bytes:
    reader = zlib.decompressobj()
    body = reader.decompress(base64.b64decode(text.encode(), altchars=b"-_", validate=True), MAX_BYTES)
    if not reader.eof:
        raise zlib.error("cut short, or too long")
    return body
