"""Data URLs (RFC 2397)."""

import base64
import binascii
from urllib.parse import unquote_to_bytes

from stint.documents.served import Raw, Unreadable


def parse_data_url(url: str, most_bytes: int) -> Raw:
    """Decode a data URL, base64 or percent-encoded; one without a type is US-ASCII text, as the RFC says.

    Raises:
        Unreadable: it has no comma, its base64 is broken, or it holds more than `most_bytes`.
    """
    header, comma, data = url.strip()[len("data:") :].partition(",")
    if not comma:
        raise Unreadable("a data URL needs a comma in front of its data, as in data:text/plain,Hello")
    if len(data) > 3 * most_bytes:  # percent-encoding makes three characters of a byte
        raise too_large(most_bytes)
    encoded = header.strip().lower().endswith(";base64")
    body = unquote_to_bytes(data)
    if encoded:
        header = header.strip()[: -len(";base64")]
        body = decode_base64(body)
    if len(body) > most_bytes:
        raise too_large(most_bytes)
    if header.startswith(";"):
        header = f"text/plain{header}"
    return Raw(header or "text/plain;charset=US-ASCII", body)


def decode_base64(data: bytes) -> bytes:
    """Decode base64 in either alphabet, with or without its padding and with white space in it."""
    compact = b"".join(data.split()).rstrip(b"=").replace(b"-", b"+").replace(b"_", b"/")
    try:
        return base64.b64decode(compact + b"=" * (-len(compact) % 4), validate=True)
    except binascii.Error:
        raise Unreadable("the base64 of its data URL is broken") from None


def too_large(most_bytes: int) -> Unreadable:
    return Unreadable(f"its data URL holds more than {most_bytes:,} bytes", "document_too_large")
