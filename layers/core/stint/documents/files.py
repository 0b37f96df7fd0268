"""The text of an uploaded file.

Names and MIME types are whatever the sender wrote, and a wrong one may be an attempt to reach another reader. So the
content decides first:

  begins with    is                    and otherwise
  %PDF-          PDF, whatever its name says
  PK 3 4         DOCX, PPTX or XLSX: `office.py` looks into the archive
  the OLE mark   an old or encrypted file of Office, which is refused with advice
  anything else  text, HTML or code, by the extension of its name, then by its MIME type; a file whose name or type is
                 that of Office is refused, and one whose type is unknown must be UTF-8 or UTF-16

Reading a file can cost far more than its size, so all but plain text is read in a process with limits of CPU time and
memory (`converter.py`), and a small file has a smaller limit of CPU time.
"""

import asyncio
import json
import re
from io import StringIO

from stint.documents.converter import Converter
from stint.documents.limits import FILE_LIMITS, Limits, limits_for_file
from stint.documents.mime_types import Kind, MimeType, kind_of, parse_mime_type, type_of_name
from stint.documents.served import Unreadable
from stint.documents.text import too_long
from stint.domain.errors import InvalidRequest
from stint.retrieval.chunking.tokens import count_tokens

MAX_FILE_TOKENS = 5_000_000
"""Maximum tokens of a file's text. OpenAI's vector stores have the same limit."""
OFFICE = {
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}
OTHER_OFFICE = {"doc": "docx", "docm": "docx", "ppt": "pptx", "pptm": "pptx", "xls": "xlsx", "xlsm": "xlsx"}
READABLE = "text, code, Markdown, HTML, JSON, CSV, PDF, DOCX, PPTX and XLSX are"
ZIP, OLE = b"PK\3\4", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
ENCRYPTED = "EncryptedPackage".encode("utf-16-le")
PLAIN_TEXT = MimeType("text/plain")
PAIR = r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
ESCAPES = re.compile(rf"\\\\|((?:{PAIR}|\\u[0-9a-fA-F]{{4}}){{1,1000}})")
STRUCTURAL = re.compile(r'["\\\x00-\x1f]')


class UnsupportedFile(InvalidRequest):
    """The text of files of this type is not read."""

    code = "unsupported_file"


class InvalidFile(InvalidRequest):
    """The file is empty, broken, encrypted, without text, or too large."""

    code = "invalid_file"


async def extract_text(
    content: bytes, filename: str, mime_type: str | None = None, limits: Limits = FILE_LIMITS
) -> str:
    """Return the text of a file, in a process with limits unless that is plain text.

    The content decides, then the extension of the name, then the MIME type.

    Raises:
        UnsupportedFile: it is not of a type that is read.
        InvalidFile: it is, and cannot be read, or is over a limit.
    """
    shown = repr(filename[-80:])
    if not content:
        raise InvalidFile(f"The file {shown} is empty.")
    if len(content) > limits.file_bytes:
        size, most = len(content), limits.file_bytes
        raise InvalidFile(f"The file {shown} has {size:,} bytes; at most {most:,} are read. Split it.")
    try:
        text = await read(content, filename, mime_type or "", limits)
    except Unreadable as error:
        kind = UnsupportedFile if error.code == "unsupported_document" else InvalidFile
        raise kind(f"The file {shown} cannot be read: {str(error).rstrip('.')}.") from None
    if not text or text.isspace():
        raise InvalidFile(f"The file {shown} has no text.")
    tokens = await asyncio.to_thread(count_tokens, text)
    if tokens > MAX_FILE_TOKENS:
        raise InvalidFile(f"The file {shown} has {tokens:,} tokens; at most {MAX_FILE_TOKENS:,} are read. Split it.")
    return text


async def read(content: bytes, filename: str, mime_type: str, limits: Limits) -> str:
    kind, declared = identify(content, filename, mime_type)
    # Before a text is decoded, which would take a multiple of its size in memory.
    if kind is Kind.text and len(content) > limits.text_bytes:
        raise too_long(limits.characters)
    async with Converter(limits_for_file(len(content), limits)) as converter:
        text = await converter.convert(kind, content, declared.essence, declared.charset)
    return await asyncio.to_thread(unescape_json, text) if "json" in declared.essence else text


def identify(content: bytes, filename: str, mime_type: str) -> tuple[Kind, MimeType]:
    """Return how a file becomes text, and its MIME type.

    Raises:
        Unreadable: it is of another type than its name or MIME type, or of one that is not read.
    """
    extension = filename.rpartition(".")[2].lower()
    if extension in OTHER_OFFICE:
        raise Unreadable(
            f".{extension} is not a supported format: save it as .{OTHER_OFFICE[extension]}", "unsupported_document"
        )
    declared = declared_type(filename, extension, mime_type)
    if content.startswith(b"%PDF-"):
        return Kind.pdf, MimeType("application/pdf")
    if content.startswith(ZIP):
        return Kind.office, declared
    if content.startswith(OLE):
        # An encrypted DOCX is an OLE file with a stream of this name.
        if ENCRYPTED in content:
            raise Unreadable("it is encrypted: remove its password")
        raise Unreadable(
            "old formats of Office are not supported: save it as DOCX, PPTX or XLSX", "unsupported_document"
        )
    for name, essence in OFFICE.items():
        if declared.essence == essence:
            raise Unreadable(f"it is declared as {name.upper()}, but its content is not")
    if declared.generic and not is_text(content):
        raise Unreadable(f"its type is unknown, and it is not text: {READABLE} read", "unsupported_document")
    declared = PLAIN_TEXT if declared.generic else declared
    return kind_of(declared), declared


def declared_type(filename: str, extension: str, mime_type: str) -> MimeType:
    """Return the MIME type by the extension, or the declared one if the extension is unknown."""
    if by_name := OFFICE.get(extension) or type_of_name(filename):
        charset = re.search(r";\s*+charset\s*+=\s*+\"?+([\w.:-]++)", mime_type, re.ASCII | re.IGNORECASE)
        return MimeType(by_name, charset[1] if charset else None)
    try:
        return parse_mime_type(mime_type)
    except Unreadable:
        return MimeType("")


def is_text(content: bytes) -> bool:
    """Return whether this is UTF-8 without control characters that text does not have, or UTF-16 with its mark."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return True
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return b"\0" not in content


def unescape_json(text: str) -> str:
    """Replace escapes such as `\\u00fc` by their characters, so that a search finds the words of the text.

    Escapes of quotes, backslashes and control characters remain. The text need not be valid JSON.
    """
    if "\\u" not in text:
        return text
    written, place = StringIO(), 0  # `re.sub` would keep a list of all pieces
    for escapes in ESCAPES.finditer(text):
        written.write(text[place : escapes.start()])
        written.write(unescape(escapes))
        place = escapes.end()
    written.write(text[place:])
    return written.getvalue()


def unescape(escapes: re.Match[str]) -> str:
    if escapes[1] is None:
        return escapes[0]
    # A pair of surrogates becomes one character; a single one becomes U+FFFD, since UTF-8 cannot encode it.
    characters = json.loads(f'"{escapes[1]}"').encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return escapes[0] if STRUCTURAL.search(characters) else characters
