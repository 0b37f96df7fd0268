"""Decoding of bytes to text."""

import codecs
import re

from stint.documents.served import Unreadable
from stint.net.encodings import find_codec

BOMS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
DECLARED_INSIDE = re.compile(
    rb"""<meta[^>]{0,200}?charset\s*+=\s*+["']?+\s*+([\w:.-]++)"""
    rb"""|<\?xml[^>]{0,200}?encoding\s*+=\s*+["']([\w:.-]++)""",
    re.I,
)
MOST_BYTES = 8
"""Maximum bytes of a character: four in UTF-8, and in ISO-2022-JP with its escape sequences."""

LOOKED_AT = 4096
"""Bytes at the start of a document that may declare its charset. HTML's own limit is 1,024."""


def decode(data: bytes, charset: str | None, essence: str, most_characters: int) -> str:
    """Decode a document by its byte order mark, the charset it was sent with, the one it declares, or as UTF-8.

    Bytes that are invalid in a known charset become U+FFFD. With an unknown charset, text that is not UTF-8 is decoded
    as windows-1252, as browsers do. Line endings become newlines.

    Raises:
        Unreadable: the bytes are not text, or so many that there are more than `most_characters`.
    """
    if data.startswith(b"%PDF-"):
        raise Unreadable(f"it is declared as {essence} but is a PDF: declare application/pdf")
    encoding = find_encoding(data, charset)
    # Before decoding, by the fewest characters that so many bytes can be.
    if len(data) > MOST_BYTES * most_characters:
        raise too_long(most_characters)
    text = data.decode(encoding, errors="replace")
    if "\0" in text:
        raise Unreadable(f"it is declared as {essence} but is not text")
    if not encoding.startswith("utf"):  # other decoders may produce single surrogates
        text = text.encode(errors="replace").decode()
    return text.replace("\r\n", "\n").replace("\r", "\n")


def too_long(most_characters: int) -> Unreadable:
    return Unreadable(f"it has more than {most_characters:,} characters: send a part", "document_too_large")


def find_encoding(data: bytes, charset: str | None) -> str:
    """Return the codec of a document.

    Raises:
        Unreadable: it was sent with a charset that the web does not use.
    """
    for bom, encoding in BOMS:
        if data.startswith(bom):
            return encoding
    if charset is None:
        return find_declared(data) or guess(data)
    codec = find_codec(charset)
    if codec is None:
        raise Unreadable(f"its charset {charset[:40]!r} is unknown: send it as UTF-8")
    return codec


def find_declared(data: bytes) -> str | None:
    """Return the charset that an HTML or XML document declares, unless it is unknown or cannot be true."""
    found = DECLARED_INSIDE.search(data[:LOOKED_AT])
    codec = find_codec((found[1] or found[2]).decode("ascii", errors="replace")) if found else None
    # A document whose declaration can be read as ASCII is not in UTF-16.
    return "utf-8" if codec and codec.startswith("utf-16") else codec


def guess(data: bytes) -> str:
    try:
        data.decode()
    except UnicodeDecodeError:
        return "cp1252"
    return "utf-8"
