"""Uploads: create, add parts, complete, cancel, expire.

  status      parts   add_part             complete             cancel      the deletion task
  pending     added   stores a part        makes the file       cancelled   waits
  completed   kept    Conflict             returns the file     Conflict    deletes the parts that the file lacks
  cancelled   -       Conflict             Conflict             cancelled   deletes all
  expired     -       Conflict             Conflict             Conflict    deletes all, after GRACE

A file is made of its parts as they are, without a copy: its record names them. So one transaction completes an upload,
whatever its size, and two requests cannot both succeed. The task is sent when the upload is created, and waits until it
has ended, so nobody has to look for uploads that were given up.
"""

import asyncio
import time
from functools import partial
from hashlib import md5

from stint.caller import create_once, end_users_of, find_attempt, next_object_id
from stint.dataclasses import dataclass
from stint.domain.errors import Conflict, InvalidRequest, NotFound, TooLarge
from stint.domain.ids import name_of, new_name
from stint.domain.openai.files import MAX_FILE_BYTES, FileObject
from stint.domain.openai.uploads import UPLOAD_SECONDS, CompleteUpload, CreateUpload, Upload, UploadPart
from stint.domain.tasks import DeletionTask
from stint.services.deletions import Deletions
from stint.store.files import FileStore, StoredPart
from stint.store.uploads import StoredUpload, UploadStore

GRACE = 60
"""Seconds by which the clocks of two processes may differ."""


class Uploads:
    """The uploads of a tenant. Unknown ids raise NotFound, and those that have ended raise Conflict."""

    def __init__(self, tenant: str, store: UploadStore, files: FileStore, deletions: Deletions) -> None:
        self.tenant = tenant
        self.store = store
        self.files = files
        self.deletions = deletions

    async def create(self, request: CreateUpload) -> Upload:
        """Store an upload, which expires after an hour. The worker will then delete its parts.

        A repeated request with the same idempotency key returns the first one's upload.
        """
        stored = await create_once(
            lambda object_id: self.store.get(self.tenant, name_of("upload", object_id)),
            lambda object_id: self.create_as(name_of("upload", object_id), request),
        )
        return stored.describe()

    async def create_as(self, upload_id: str, request: CreateUpload) -> StoredUpload:
        """Store an upload under a new id."""
        now = int(time.time())
        # The task is sent first, so that no upload stays if this process dies.
        await self.deletions.send(self._task(upload_id))
        stored = StoredUpload(upload_id, request, now, now + UPLOAD_SECONDS)
        await self.store.create(self.tenant, stored, end_users_of())
        return stored

    async def add_part(self, upload_id: str, content: bytes) -> UploadPart:
        """Store a part. A repeated request with the same idempotency key returns the first one's.

        Raises:
            InvalidRequest: it is empty.
            TooLarge: it has more than MAX_FILE_BYTES.
        """
        check_part(len(content))
        part = UploadPart(id=name_of("part", next_object_id()), created_at=int(time.time()), upload_id=upload_id)
        # The first request has stored the part, and its answer was lost.
        if find_attempt().repeated and part.id in (await self.store.get_with_parts(self.tenant, upload_id)).parts:
            return part
        upload = await self.store.get(self.tenant, upload_id)
        require_pending(upload)
        # The upload has ended since it was read. `require_pending` says how.
        if not await self.store.add_part(self.tenant, upload, part, content):
            require_pending(await self.store.get(self.tenant, upload_id))
        return part

    async def complete(self, upload_id: str, request: CompleteUpload) -> Upload:
        """Make a file of parts, in the given order. A repeated request returns the same file.

        Raises:
            InvalidRequest: a part is unknown, or the file has another size or MD5 than declared.
        """
        upload = await self.store.get_with_parts(self.tenant, upload_id)
        if upload.status != "completed":
            require_pending(upload)
            parts = choose_parts(upload, request.part_ids)
            await self._check_md5(request.md5, upload, parts)
            await self.store.complete(self.tenant, upload, make_file(upload), parts)
            # Read again, whoever has completed it: both requests get the same file.
            upload = await self.store.get(self.tenant, upload_id)
        if upload.file_id is None:
            require_pending(upload)
            raise Conflict(f"Upload {upload_id} is being changed by another request. Try again.")
        return upload.describe(await self.files.get(self.tenant, upload.file_id))

    async def cancel(self, upload_id: str) -> Upload:
        """Cancel an upload, and delete its parts. A repeated request returns the same."""
        await self.deletions.start_deletion(self._task(upload_id), partial(self._mark_cancelled, upload_id))
        return (await self.store.get(self.tenant, upload_id)).describe()

    async def _mark_cancelled(self, upload_id: str) -> None:
        await self.store.cancel(self.tenant, upload_id)
        upload = await self.store.get(self.tenant, upload_id)
        if upload.status != "cancelled":
            require_pending(upload)

    async def _check_md5(self, expected: str | None, upload: StoredUpload, parts: list[StoredPart]) -> None:
        """Read the parts one by one. Raises InvalidRequest."""
        if expected is None:
            return
        digest = md5(usedforsecurity=False)
        for part in parts:
            await asyncio.to_thread(digest.update, await self.store.read_part(part))
        if digest.hexdigest() != expected.lower():
            raise InvalidRequest(
                f"The parts of {upload.upload_id} have the MD5 {digest.hexdigest()}, not {expected}. "
                "Upload the file again.",
                code="md5_mismatch",
                param="md5",
            )

    def _task(self, upload_id: str) -> DeletionTask:
        return DeletionTask(kind="delete_upload", tenant=self.tenant, upload_id=upload_id)


@dataclass(frozen=True, slots=True)
class UploadDeletion:
    """Deletes what no file needs of an upload: all parts if it expired or was cancelled, unused ones otherwise."""

    store: UploadStore

    async def delete(self, task: DeletionTask, _deadline: float) -> bool:
        """Return False as long as the upload is pending, so that the task is sent again with its delay."""
        try:
            upload = await self.store.get_with_parts(task.tenant, task.ids[0])
        except NotFound:  # its file was deleted, or it was never stored
            return True
        # A request whose clock is behind may still complete an upload that has just expired.
        if upload.status == "pending" or (upload.status == "expired" and time.time() < upload.expires_at + GRACE):
            return False
        # The parts of a file, and none if there is no file.
        kept = await self.store.kept_blobs(task.tenant, upload)
        await self.store.delete_parts(task.tenant, upload, kept)
        return True


def check_part(size: int) -> None:
    """Raise InvalidRequest or TooLarge if a part of this size cannot be stored."""
    if size == 0:
        raise InvalidRequest("The part is empty. Send a part with content.", code="empty_part", param="data")
    if size > MAX_FILE_BYTES:
        raise TooLarge(
            f"The part has {size:,} bytes, at most {MAX_FILE_BYTES:,} fit into a request. "
            "Set part_size to 4_000_000 in upload_file_chunked.",
            param="data",
        )


def require_pending(upload: StoredUpload) -> None:
    """Raise Conflict if an upload has ended."""
    if upload.status != "pending":
        raise Conflict(
            f"Upload {upload.upload_id} is {upload.status}. Create another one.", code=f"upload_{upload.status}"
        )


def choose_parts(upload: StoredUpload, part_ids: list[str]) -> list[StoredPart]:
    """Return the parts with these ids.

    Raises:
        InvalidRequest: one is unknown or named twice, or they have another size together than was declared.
    """
    unknown = next((index for index, part_id in enumerate(part_ids) if part_id not in upload.parts), None)
    if unknown is not None:
        raise InvalidRequest(
            f"Upload {upload.upload_id} has no part {part_ids[unknown][:100]!r}.", param=f"part_ids[{unknown}]"
        )
    if len(set(part_ids)) < len(part_ids):
        raise InvalidRequest("A part is named twice. Name each part once, in order.", param="part_ids")
    chosen = [upload.parts[part_id] for part_id in part_ids]
    size = sum(part.length for part in chosen)
    if size != upload.request.bytes:
        raise InvalidRequest(
            f"The parts have {size:,} bytes together, but the upload was created with {upload.request.bytes:,}. "
            "Add what is missing, or create an upload with the right size.",
            code="bytes_mismatch",
            param="part_ids",
        )
    return chosen


def make_file(upload: StoredUpload) -> FileObject:
    """Return the file that an upload becomes now."""
    now, request = int(time.time()), upload.request
    return FileObject(
        id=new_name("file", "-"),
        bytes=request.bytes,
        created_at=now,
        expires_at=now + request.expires_after.seconds if request.expires_after else None,
        filename=request.filename,
        purpose=request.purpose,
    )
