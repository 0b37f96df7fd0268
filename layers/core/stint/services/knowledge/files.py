"""Files: create, list, read, delete.

Both ways have a task that is sent before the first write, so that a process that dies leaves nothing for ever:

  step       creation                                 deletion
  first      a task for an object without a record    a task for the file
  then       the object, for a large content          a mark in the record: no reader finds the file
  then       the record: the file exists              it is removed from vector stores, then its content

The request does the last step for 20 seconds (`Deletions`), and the worker the rest. It deletes no file without a mark
(NotMarkedDeleted): the request may have died between the task and the mark.
"""

import time
from collections.abc import AsyncIterator
from functools import partial
from typing import Protocol

from stint.caller import create_once, end_users_of
from stint.dataclasses import dataclass
from stint.domain.errors import InvalidRequest, TooLarge
from stint.domain.ids import name_of
from stint.domain.openai.files import (
    MAX_FILE_BYTES,
    DeletedFile,
    FileExpiry,
    FileList,
    FileObject,
    FilePurpose,
)
from stint.domain.tasks import DeletionTask
from stint.services.deletions import Deletions
from stint.store.files import FileStore, Order


class DetachFile(Protocol):
    """A function that removes a deleted file from the vector stores that have it, until a deadline.

    It returns whether nothing is left to do.
    """

    async def __call__(self, tenant: str, file_id: str, deadline: float, /) -> bool: ...


@dataclass(frozen=True, slots=True)
class NewFile:
    """The request that creates a file, without its content."""

    filename: str
    purpose: FilePurpose
    expires_after: FileExpiry | None = None


@dataclass(frozen=True, slots=True)
class OpenFile:
    """A file and its content, which is read piece by piece."""

    file: FileObject
    pieces: AsyncIterator[bytes]

    async def read(self) -> bytes:
        """Return the whole content."""
        return b"".join([piece async for piece in self.pieces])


class Files:
    """The files of a tenant. Unknown, deleted and expired ids raise NotFound."""

    def __init__(self, tenant: str, store: FileStore, deletions: Deletions) -> None:
        self.tenant = tenant
        self.store = store
        self.deletions = deletions

    async def create(self, request: NewFile, content: bytes) -> FileObject:
        """Store a file. A repeated request with the same idempotency key returns the first one's.

        Raises:
            InvalidRequest: it is empty.
            TooLarge: it has more than MAX_FILE_BYTES.
        """
        check_size(len(content))
        return await create_once(
            lambda object_id: self.get(name_of("file", object_id, "-")),
            lambda object_id: self.create_as(name_of("file", object_id, "-"), request, content),
        )

    async def create_as(self, file_id: str, request: NewFile, content: bytes) -> FileObject:
        """Store a file under a new id."""
        now = int(time.time())
        file = FileObject(
            id=file_id,
            bytes=len(content),
            created_at=now,
            expires_at=now + request.expires_after.seconds if request.expires_after else None,
            filename=request.filename,
            purpose=request.purpose,
        )
        task = DeletionTask(kind="delete_file", tenant=self.tenant, file_id=file_id).before_creation()
        await self.store.create(self.tenant, file, content, end_users_of(), partial(self.deletions.send, task))
        return file

    async def get(self, file_id: str) -> FileObject:
        return await self.store.get(self.tenant, file_id)

    async def get_many(self, file_ids: list[str]) -> dict[str, FileObject]:
        """Read files by their ids. Those that do not exist are omitted."""
        return await self.store.get_many(self.tenant, file_ids)

    async def list(self, after: str | None, limit: int, order: Order, purpose: FilePurpose | None) -> FileList:
        """List files by creation, starting after `after`. Raises NotFound if that does not exist."""
        page = await self.store.list(self.tenant, after=after, limit=limit, order=order, purpose=purpose)
        return FileList.of(page.data, page.has_more)

    async def open(self, file_id: str) -> OpenFile:
        """Return a file with its content, which is not read yet."""
        stored = await self.store.open(self.tenant, file_id)
        return OpenFile(stored.file, self.store.read(stored))

    async def delete(self, file_id: str) -> DeletedFile:
        """Delete a file, also from the vector stores that have it. When this returns, no reader can find it."""
        task = DeletionTask(kind="delete_file", tenant=self.tenant, file_id=file_id)
        await self.deletions.start_deletion(task, partial(self.store.mark_deleted, self.tenant, file_id))
        return DeletedFile(id=file_id)


@dataclass(frozen=True, slots=True)
class FileDeletion:
    """Finishes the deletion of marked files: removes them from vector stores, and then deletes their contents."""

    store: FileStore
    detach: DetachFile

    async def delete(self, task: DeletionTask, deadline: float) -> bool:
        """Delete a task's file, and return whether nothing is left to do. Raises NotMarkedDeleted."""
        file_id = task.ids[0]
        if task.orphan:
            await self.store.delete_orphan(task.tenant, file_id)
            return True
        await self.store.check_marked(task.tenant, file_id)
        # First, while the file's record still says that there is something left to do.
        if not await self.detach(task.tenant, file_id, deadline):
            return False
        await self.store.delete(task.tenant, file_id)
        return True


def check_size(size: int) -> None:
    """Raise InvalidRequest or TooLarge if a file of this size cannot be stored."""
    if size == 0:
        raise InvalidRequest("The file is empty. Send a file with content.", code="empty_file", param="file")
    if size > MAX_FILE_BYTES:
        raise TooLarge(
            f"The file has {size:,} bytes, at most {MAX_FILE_BYTES:,} fit into a request. Use POST /v1/uploads.",
            param="file",
        )
