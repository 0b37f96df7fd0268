"""Files of code: their names and types."""

import mimetypes
import unicodedata
from collections.abc import Collection
from itertools import count

LONGEST_NAME = 200
"""Bytes of a file's name."""

LONGEST_STEM, LONGEST_EXTENSION = 160, 20
"""Bytes of the parts of a name that is made."""

EXTENSIONS = {
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": ".xlsx",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": ".docx",
    "application/vnd.openxmlformats-officedocument.presentationml.presentation": ".pptx",
    "application/vnd.apache.parquet": ".parquet",
    "application/yaml": ".yaml",
    "application/x-ndjson": ".jsonl",
    "text/markdown": ".md",
    "text/plain": ".txt",
}
"""Extensions of types that Python's table lacks, or has with another extension."""


def is_file_name(name: str) -> bool:
    """Return whether a file with this name can be given to code."""
    plain = bool(name) and not name.startswith(".") and "/" not in name and name.isprintable()
    return plain and len(name.encode()) <= LONGEST_NAME


def media_type_of(name: str) -> str:
    """Return the media type of a file by the extension of its name."""
    return mimetypes.guess_type(name)[0] or "application/octet-stream"


def make_name(wanted: str, default: str, media_type: str, taken: Collection[str]) -> str:
    """Return a name for a file that is not taken, also not in other letters.

    It is the last part of `wanted` without characters that a name cannot have, or `default` if nothing is left. A name
    without an extension gets that of the media type.
    """
    stem, dot, extension = clean_name(wanted).rpartition(".")
    if not stem or len(extension.encode()) > LONGEST_EXTENSION:
        stem, dot, extension = stem + dot + extension or default, "", ""
    ending = dot + extension or EXTENSIONS.get(media_type) or mimetypes.guess_extension(media_type) or ""
    stem = stem.encode()[:LONGEST_STEM].decode(errors="ignore")
    known = {name.casefold() for name in taken}
    names = (f"{stem}{'' if number == 1 else f'-{number}'}{ending}" for number in count(1))
    return next(name for name in names if name.casefold() not in known)


def clean_name(text: str) -> str:
    """Return the last part of a path, with a `_` in place of each character that a name cannot have."""
    part = text.replace("\\", "/").rstrip("/").rpartition("/")[2][-1_000:]
    return "".join(char if char.isprintable() else "_" for char in unicodedata.normalize("NFC", part)).strip(" .")
