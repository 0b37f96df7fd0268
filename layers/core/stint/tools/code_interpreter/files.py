"""Files of code: their names and types."""

import mimetypes

LONGEST_NAME = 200
"""Bytes of a file's name."""


def is_file_name(name: str) -> bool:
    """Return whether a file with this name can be given to code."""
    plain = bool(name) and not name.startswith(".") and "/" not in name and name.isprintable()
    return plain and len(name.encode()) <= LONGEST_NAME


def media_type_of(name: str) -> str:
    """Return the media type of a file by the extension of its name."""
    return mimetypes.guess_type(name)[0] or "application/octet-stream"
