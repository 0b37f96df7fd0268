"""MIME types, and how documents of each type become text.

A type says how to convert a document, and is trusted no further: each reader checks what it gets. The sender's type
wins over the server's, unless it says nothing (GENERIC); of files, the extension comes before both (`files.py`).
"""

import re
from enum import Enum, auto

from stint.dataclasses import dataclass
from stint.documents.served import Unreadable

ESSENCE = re.compile(r"\s*([\w!#$&^.+-]+/[\w!#$&^.+*-]+|\*/\*)?\s*", re.ASCII)
CHARSET = re.compile(r";\s*charset\s*=\s*\"?([\w.:-]+)", re.ASCII | re.IGNORECASE)
GENERIC = frozenset({"", "*/*", "text/*", "application/octet-stream", "binary/octet-stream", "application/binary"})
HTML = frozenset({"text/html", "application/xhtml+xml"})
TEXTS = frozenset(
    f"application/{name}"
    for name in ("json", "xml", "yaml", "x-yaml", "toml", "x-ndjson", "ndjson", "jsonl", "sql", "javascript", "csv")
)
TYPES_OF_NAMES = {
    "pdf": "application/pdf",
    "html": "text/html",
    "htm": "text/html",
    "xhtml": "application/xhtml+xml",
    "json": "application/json",
    "jsonl": "application/jsonl",
    "ndjson": "application/x-ndjson",
    "xml": "application/xml",
    "yaml": "application/yaml",
    "yml": "application/yaml",
    "toml": "application/toml",
    "md": "text/markdown",
    "markdown": "text/markdown",
    "csv": "text/csv",
    "tsv": "text/tab-separated-values",
    "css": "text/css",
    "sql": "application/sql",
}
PLAIN = (
    "txt text log rst tex srt vtt diff patch ini cfg conf properties sh bash zsh ps1 bat py pyi js mjs cjs ts jsx tsx",
    "java kt scala c h cc cpp hpp cs go rs rb php pl lua r swift m vue svelte graphql proto tf",
)
PLAIN_NAMES = frozenset(name for names in PLAIN for name in names.split())
"""File extensions of plain text, whatever the MIME type is called."""


class Kind(Enum):
    text = auto()
    """Decoded as it is."""
    html = auto()
    """Without markup, scripts and styles."""
    pdf = auto()
    """The text of its pages."""
    office = auto()
    """DOCX, PPTX or XLSX, in files only: no function but the worker has the libraries."""


@dataclass(frozen=True, slots=True)
class MimeType:
    """A media type in lower case without parameters (RFC 9110, section 8.3.1), and its charset, if any."""

    essence: str
    charset: str | None = None

    @property
    def generic(self) -> bool:
        """Return whether the type says nothing about the document."""
        return self.essence in GENERIC


def parse_mime_type(text: str) -> MimeType:
    """Parse a Content-Type.

    Raises:
        Unreadable: it is not a MIME type.
    """
    found = ESSENCE.match(text)
    if found is None or text[found.end() : found.end() + 1] not in ("", ";"):
        raise Unreadable(f"{text[:60]!r} is not a MIME type", "unsupported_document")
    charset = CHARSET.search(text, found.end())
    return MimeType((found[1] or "").lower(), charset[1] if charset else None)


def type_of_name(filename: str) -> str:
    """Return the MIME type of a readable file by its extension; empty if the extension is unknown."""
    ending = filename.rpartition(".")[2].lower()
    return "text/plain" if ending in PLAIN_NAMES else TYPES_OF_NAMES.get(ending, "")


def choose(declared: MimeType, served: MimeType) -> MimeType:
    """Return the sender's MIME type, or the one of the name if the sender's says nothing."""
    return declared if not declared.generic or (served.generic and declared.essence) else served


def kind_of(mime_type: MimeType) -> Kind:
    """Return how a document becomes text.

    Raises:
        Unreadable: documents of this type cannot be read.
    """
    essence = mime_type.essence
    if essence in HTML:
        return Kind.html
    if essence == "application/pdf":
        return Kind.pdf
    if essence.startswith("text/") or essence in TEXTS or essence.endswith(("+json", "+xml", "+yaml")):
        return Kind.text
    if not essence:
        raise Unreadable("it has no MIME type: set mime_type", "unsupported_document")
    raise Unreadable(
        f"its MIME type {essence!r} is not supported: use text/*, HTML, PDF, JSON, XML, YAML or Markdown",
        "unsupported_document",
    )
