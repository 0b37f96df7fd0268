"""Opaque texts, which a client passes from one request to the next.

They are signed and encoded, not encrypted: a client can read but not forge them. They contain only what the client
may know: a model's reasoning and signature, or a summary of a conversation.
"""

import base64
import binascii
import hashlib
import hmac
import zlib
from typing import Annotated, TypeVar

from pydantic import Field, ValidationError

from stint.dataclasses import dataclass, field
from stint.domain.fields import is_none
from stint.domain.schema import Schema
from stint.domain.stored_messages import StoredMessage

S = TypeVar("S", bound=Schema)

PREFIX = "st2."
UNSIGNED_PREFIX = "st1."
"""The prefix of texts from before signatures."""

MAX_BYTES = 8_000_000
"""Maximum bytes of JSON in all opaque texts of one request."""

MAC_BYTES = 16


class CompactedContext(Schema):
    """The content of a compaction item: the model's summary of a conversation, and its system messages.

    An item of an automatic compaction also has the `messages` that follow. It replaces all items before it.
    """

    summary: str
    instructions: list[str] = Field(default_factory=list)
    messages: Annotated[list[StoredMessage] | None, Field(exclude_if=is_none)] = None


@dataclass(frozen=True, slots=True)
class SigningKey:
    """Signs a tenant's opaque texts (HMAC-SHA-256, RFC 2104, cut to 128 bits)."""

    tenant: str
    secret: bytes = field(repr=False)

    def sign(self, kind: str, packed: bytes) -> bytes:
        """Return the MAC of a packed document. The signature covers the tenant and the document's class, too."""
        head = f"stint opaque\0{self.tenant}\0{kind}\0".encode()
        return hmac.digest(self.secret, head + packed, hashlib.sha256)[:MAC_BYTES]


def encode_opaque(document: Schema, key: SigningKey) -> str:
    """Encode a document as signed text that is safe in a URL."""
    kind = type(document).__name__
    packed = zlib.compress(f"{kind}\n{document.model_dump_json()}".encode(), 6)
    return PREFIX + base64.urlsafe_b64encode(key.sign(kind, packed) + packed).decode()


def is_unsigned(text: str) -> bool:
    """Return whether a text claims to be from before signatures."""
    return text.startswith(UNSIGNED_PREFIX)


def check_opaque(text: str, kind: type[Schema], key: SigningKey) -> None:
    """Check that `encode_opaque` made a text from this class for this tenant, without decompressing it.

    Raises:
        ValueError: it did not, or the text was changed.
    """
    mac, packed = _split(text)
    if not hmac.compare_digest(mac, key.sign(kind.__name__, packed)):
        raise ValueError(
            "It was changed, belongs to an item of another type, or was not created by this server. Send it back "
            "unchanged, or remove the item."
        )


class OpaqueReader:
    """Reads the opaque texts of one request, of which `left` bytes of JSON are left.

    They must have been checked: see `check_opaque`.
    """

    def __init__(self, limit: int = MAX_BYTES) -> None:
        self.left = limit

    def read(self, text: str, kind: type[S]) -> S:
        """Read a document from signed or older text.

        Raises:
            ValueError: the text is damaged, has a document of another class, or exceeds the limit.
        """
        name, _, body = self._unpack(_split(text)[1]).partition(b"\n")
        if name != kind.__name__.encode():
            raise ValueError("It belongs to an item of another type.")
        try:
            return kind.model_validate_json(body)
        except ValidationError:
            raise ValueError("It is damaged. Send it back unchanged.") from None

    def _unpack(self, packed: bytes) -> bytes:
        inflater = zlib.decompressobj()
        try:
            body = inflater.decompress(packed, self.left + 1)
        except zlib.error:
            raise ValueError("It is damaged. Send it back unchanged.") from None
        if len(body) > self.left:
            raise ValueError(
                f"The encrypted_content of this request has more than {MAX_BYTES:,} bytes in total. Remove older "
                "reasoning items, or compact the conversation."
            )
        if not inflater.eof:
            raise ValueError("It is damaged. Send it back unchanged.")
        self.left -= len(body)
        return body


def _split(text: str) -> tuple[bytes, bytes]:
    """Return the MAC (empty for older text) and the packed document."""
    prefix = next((known for known in (PREFIX, UNSIGNED_PREFIX) if text.startswith(known)), None)
    if prefix is None:
        raise ValueError("It was not created by this server. Send the content that this server returned, unchanged.")
    try:
        raw = base64.b64decode(text[len(prefix) :].encode(), altchars=b"-_", validate=True)
    except (binascii.Error, UnicodeError):
        raise ValueError("It is damaged. Send it back unchanged.") from None
    size = MAC_BYTES if prefix == PREFIX else 0
    return raw[:size], raw[size:]
