"""Files: bytes under an id, which responses and vector stores read."""

import re
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, TypeAdapter

from stint.domain.openai.lists import ListObject
from stint.domain.schema import Request, Schema

MAX_FILE_BYTES = 4_400_000
"""Largest file, or part of an upload, in one request: with base64 and headers, Lambda's event of 6 MB has it."""

MAX_FILENAME = 255
"""Maximum characters of a file name."""

INVALID_NAME = f"The file name is invalid. Send 1 to {MAX_FILENAME} characters without control characters."

FilePurpose = Literal["assistants", "batch", "fine-tune", "vision", "user_data", "evals"]

PURPOSE: TypeAdapter[FilePurpose] = TypeAdapter(FilePurpose, config=ConfigDict(defer_build=True))


def name_of(path: str) -> str | None:
    """Return the last part of a path as the name of a file, or None if it is not a valid one."""
    name = re.split(r"[/\\]", path)[-1].strip()
    valid = name not in ("", ".", "..") and len(name) <= MAX_FILENAME and not re.search(r"[\x00-\x1f\x7f]", name)
    return name if valid else None


class FileExpiry(Request):
    """The time from the creation of a file to its deletion."""

    anchor: Literal["created_at"]
    seconds: Annotated[int, Field(ge=3_600, le=2_592_000)]


class FileObject(Schema):
    """A file as the API returns it and the store keeps it. Times are in seconds since 1970."""

    id: str
    object: Literal["file"] = "file"
    bytes: int
    created_at: int
    expires_at: int | None = None
    filename: str
    purpose: FilePurpose
    status: Literal["uploaded", "processed", "error"] = "processed"


class FileList(ListObject[FileObject]):
    """A page of files."""


class DeletedFile(Schema):
    id: str
    object: Literal["file"] = "file"
    deleted: Literal[True] = True
