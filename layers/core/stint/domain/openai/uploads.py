"""Uploads: files that arrive in parts."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from stint.domain.fields import Omitted, invalid
from stint.domain.openai.files import INVALID_NAME, FileExpiry, FileObject, FilePurpose, name_of
from stint.domain.schema import Request, Schema

MAX_UPLOAD_BYTES = 536_870_912
"""Largest file of an upload: 512 MB, OpenAI's limit for files."""

MAX_UPLOAD_PARTS = 1_000
"""Maximum parts of a file."""

UPLOAD_SECONDS = 3_600
"""Time until an upload that is not completed expires."""

UploadStatus = Literal["pending", "completed", "cancelled", "expired"]


def check_filename(name: str) -> str:
    """Return the last part of a file's name, which may be a path. Refuse one without any name."""
    last = name_of(name)
    if last is None:
        raise invalid(INVALID_NAME)
    return last


class CreateUpload(Request):
    bytes: Annotated[int, Field(ge=1, le=MAX_UPLOAD_BYTES)]
    filename: Annotated[str, Field(max_length=4_096), AfterValidator(check_filename)]
    mime_type: Annotated[str, Field(max_length=255)]
    purpose: FilePurpose
    expires_after: FileExpiry | None = None


class CompleteUpload(Request):
    """The parts in order, and optionally the MD5 of the whole file in hex."""

    part_ids: Annotated[list[str], Field(min_length=1, max_length=MAX_UPLOAD_PARTS)]
    md5: Annotated[str, Field(pattern=r"^[0-9a-fA-F]{32}$")] | None = None


class Upload(Schema):
    """An upload as the API returns it. Times are in seconds since 1970."""

    id: str
    object: Literal["upload"] = "upload"
    bytes: int
    created_at: int
    expires_at: int
    filename: str
    purpose: FilePurpose
    status: UploadStatus
    file: Omitted[FileObject] = None


class UploadPart(Schema):
    id: str
    object: Literal["upload.part"] = "upload.part"
    created_at: int
    upload_id: str
