"""Data URLs (RFC 2397)."""

import base64
import binascii
from urllib.parse import unquote_to_bytes

from stint.documents.served import InlineDocument, Unreadable

PIECE = 65_536
"""Characters of a data URL that are decoded at a time. Divisible by four, the characters of a base64 group."""

STANDARD = bytes.maketrans(b"-_", b"+/")


def parse_data_url(url: str, most_bytes: int) -> InlineDocument:
    """Decode a data URL, base64 or percent-encoded. Without a type it is US-ASCII text, as the RFC says.

    Raises:
        Unreadable: it has no comma, its base64 is invalid, or it has more than `most_bytes`.
    """
    url = url.strip()
    comma = url.find(",")
    if comma < 0:
        raise Unreadable("a data URL needs a comma before its data: data:text/plain,Hello")
    # Before anything is decoded or copied.
    if len(url) - comma > 3 * most_bytes + 1:  # percent-encoding takes three characters per byte
        raise too_large(most_bytes)
    header = url[len("data:") : comma].strip()
    body = unquote(url[comma + 1 :].encode())
    if header.lower().endswith(";base64"):
        header = header[: -len(";base64")]
        body = decode_base64(body)
    if len(body) > most_bytes:
        raise too_large(most_bytes)
    if header.startswith(";"):
        header = f"text/plain{header}"
    return InlineDocument(header or "text/plain;charset=US-ASCII", body)


def unquote(data: bytes) -> bytes:
    """Decode percent-encoded bytes in pieces. urllib makes an object per escape, 250 MB for two million."""
    if b"%" not in data:
        return data
    pieces: list[bytes] = []
    start = 0
    while start < len(data):
        end = start + PIECE
        divided = data.find(b"%", end - 2, end)  # no piece ends inside an escape such as %41
        end = divided if divided > start else end
        pieces.append(unquote_to_bytes(data[start:end]))
        start = end
    return b"".join(pieces)


def decode_base64(data: bytes) -> bytes:
    """Decode base64 in either alphabet, with or without padding and white space."""
    compact = data.translate(STANDARD, b" \t\r\n\f\v").rstrip(b"=")
    try:
        return base64.b64decode(compact + b"=" * (-len(compact) % 4), validate=True)
    except binascii.Error:
        raise Unreadable("its data URL has invalid base64") from None


def too_large(most_bytes: int) -> Unreadable:
    return Unreadable(f"its data URL has more than {most_bytes:,} bytes", "document_too_large")
