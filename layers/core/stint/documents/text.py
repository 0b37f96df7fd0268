"""Bytes as text."""

import codecs
import re

from stint.documents.served import Unreadable

BOMS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
DECLARED_INSIDE = re.compile(
    rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([\w:.-]+)|<\?xml[^>]{0,200}?encoding\s*=\s*["']([\w:.-]+)""", re.I
)
LOOKED_AT = 4096
"""Bytes at the beginning of a document in which it may name its charset; HTML's own limit is 1,024."""


def decode(data: bytes, charset: str | None, essence: str) -> str:
    """Decode a document by its byte order mark, else by the charset it was sent with, or names itself, else as UTF-8.

    Bytes that are not of the charset become U+FFFD when the charset was told; when it was not, what is no UTF-8 is
    taken for windows-1252, as browsers do. Line ends become newlines.

    Raises:
        Unreadable: the bytes are not text.
    """
    for bom, encoding in BOMS:
        if data.startswith(bom):
            return finish(data.decode(encoding, errors="replace"))
    if data.startswith(b"%PDF-"):
        raise Unreadable(f"it is sent as {essence} and is a PDF: declare application/pdf")
    encoding = charset or find_charset(data) or guess(data)
    try:
        text = data.decode(encoding, errors="replace")
    except (LookupError, ValueError):
        raise Unreadable(f"its charset {encoding[:40]!r} is unknown") from None
    if "\0" in text:
        raise Unreadable(f"it is sent as {essence} and is not text")
    return finish(text)


def find_charset(data: bytes) -> str | None:
    """Find the charset that an HTML or XML document names."""
    found = DECLARED_INSIDE.search(data[:LOOKED_AT])
    return (found[1] or found[2]).decode("ascii", errors="replace") if found else None


def guess(data: bytes) -> str:
    try:
        data.decode()
    except UnicodeDecodeError:
        return "windows-1252"
    return "utf-8"


def finish(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")
