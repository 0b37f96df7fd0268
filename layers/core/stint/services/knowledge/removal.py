"""Deletion of vector stores and of their documents: first from the index, then from the bucket, then from the table.

The record is last, because it is what a repetition needs: it names the chunks and contents that are left. Everything
may be stopped at any point, and each repetition deletes what is left.

A worker may be writing chunks while its document is deleted. It cannot be interrupted, so the deletion waits for it:

  step                               the writer
  the document is marked             cannot renew or acquire its lease from now on
  its chunks are deleted             may write more, until its lease lapses
  WriteInProgress, while it is held  stops; the task is delivered again later
  the chunks are deleted again       is gone
  contents and record are deleted    -

  task                    deletes                                      keeps
  delete_store_document   one document                                 -
  delete_vector_store     a store with all documents                   its files
  delete_store_contents   the index and contents of an expired store   the records: a reader is told that it expired
  (of a file)             the file's documents in all stores           -
"""

import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial

from stint.dataclasses import dataclass
from stint.domain.errors import NotFound, NotMarkedDeleted, WriteInProgress
from stint.domain.tasks import DeletionTask
from stint.domain.vector_stores import LastError
from stint.retrieval.port import VectorIndex
from stint.services.knowledge.entries import chunk_keys
from stint.store.keys import vector_index
from stint.store.parallel import map_concurrently
from stint.store.store import Store
from stint.store.stored_documents import StoredDocument
from stint.store.table import take

DELETED_AT_ONCE = 100
LATER = "The deletion continues when the writer has stopped."

EXPIRED = LastError(code="invalid_file", message="The vector store has expired. Create another one.")

MakeIndex = Callable[[], VectorIndex]

StopWriter = Callable[[str], Awaitable[StoredDocument | None]]
"""A function that prevents leases of a document, and returns it as it then is; None if it does not exist."""


@dataclass(frozen=True, slots=True)
class Removal:
    """Deletes marked stores and documents. Each method may be stopped and repeated at any point.

    `deadline` is on the monotonic clock. The methods return whether nothing is left to do. A document whose lease is
    held keeps its record until the lease has ended: its writer loses the lease when it next renews it.
    """

    store: Store
    make_index: MakeIndex

    async def delete_document(self, task: DeletionTask, _deadline: float) -> bool:
        """Delete the chunks, the texts and the record of a marked document.

        Raises:
            WriteInProgress: a process may still write its chunks.
            NotMarkedDeleted: the document has no mark.
        """
        tenant, (store_id, document) = task.tenant, task.ids
        found = await self.store.vector_store_documents.get_marked(tenant, store_id, document)
        if found is None:
            return True
        if not found.deleted:
            raise NotMarkedDeleted("File", document)
        await self.remove_document(tenant, store_id, found)
        return True

    async def remove_document(self, tenant: str, store_id: str, found: StoredDocument) -> None:
        keys = [key for name, count in found.generations.items() for key in chunk_keys(found.key, name, count)]
        if keys:
            with suppress(NotFound):
                await self.make_index().delete(vector_index(tenant, store_id), keys)
        # After the deletion of the chunks: most of them are gone at once, and those that come later are deleted by a
        # repetition.
        refuse_held(found)
        if found.settings.entities:
            await self.store.entity_links.remove(tenant, store_id, found.key, found.settings.entities)
        await self.store.vector_store_contents.delete_document(tenant, store_id, found.key)
        if found.end_users:
            await self.store.document_owners.remove(tenant, store_id, found)
        await self.store.vector_store_documents.remove(tenant, store_id, found.key)

    async def delete_store(self, task: DeletionTask, deadline: float) -> bool:
        """Delete a marked store: stop the writers of its documents, and delete its index, texts and records.

        Raises:
            WriteInProgress: a process may still write chunks.
            NotMarkedDeleted: the store has no mark.
        """
        tenant, (store_id,) = task.tenant, task.ids
        settings = await self.store.vector_stores.get_marked(tenant, store_id)
        if settings is None:
            return True
        # First, so that the name is free for another store while this one is being deleted.
        if settings.identifier is not None:
            await self.store.vector_db_names.remove(tenant, settings.identifier, store_id)

        async def mark(document: str) -> StoredDocument | None:
            found = await self.store.vector_store_documents.mark_in_deleted_store(tenant, store_id, document)
            if found is not None and found.end_users:
                await self.store.document_owners.remove(tenant, store_id, found)
            return found

        # Before the index is dropped: a writer would create it again.
        if not await self.stop_writers(tenant, store_id, mark, deadline):
            return False
        await self.make_index().drop(vector_index(tenant, store_id))
        await self.store.vector_store_contents.delete_store(tenant, store_id)
        async for _ in self.store.vector_store_documents.remove_all(tenant, store_id):
            if time.monotonic() >= deadline:
                return False
        await self.store.vector_stores.remove(tenant, store_id)
        return True

    async def delete_contents(self, task: DeletionTask, deadline: float) -> bool:
        """Delete the chunks and texts of a store that has expired. Its record and those of its documents stay.

        Raises WriteInProgress if a process may still write chunks.
        """
        tenant, (store_id,) = task.tenant, task.ids
        try:
            store = await self.store.vector_stores.get(tenant, store_id)
        except NotFound:
            return True
        if not store.expired:
            return True
        if not store.emptied and not await self.store.vector_stores.mark_emptied(tenant, store):
            return False
        end = partial(self.store.vector_store_documents.end, tenant, store_id, EXPIRED)
        if not await self.stop_writers(tenant, store_id, end, deadline):
            return False
        await self.make_index().drop(vector_index(tenant, store_id))
        await self.store.vector_store_contents.delete_store(tenant, store_id)
        return True

    async def stop_writers(self, tenant: str, store_id: str, stop: StopWriter, deadline: float) -> bool:
        """Call `stop` for the documents of a store that have a writer, may get one, or belong to end users.

        Returns whether there was time for all. Raises WriteInProgress if one has a lease.
        """
        reading, held = self.store.vector_store_documents.read(tenant, store_id), False
        while some := await take(reading, DELETED_AT_ONCE):
            writable = [one.key for one in some if one.status == "in_progress" or one.held or one.end_users]
            stopped = await map_concurrently(stop, writable)
            held |= any(one is not None and one.held for one in stopped)
            if time.monotonic() >= deadline:
                return False
        if held:
            raise WriteInProgress(f"Files of vector store {store_id} are still being written. {LATER}")
        return True

    async def detach_file(self, tenant: str, file_id: str, deadline: float) -> bool:
        """Delete a file's documents in all stores: one read per 100 stores, and two units per document."""
        documents = self.store.vector_store_documents
        async for store_ids in self.store.vector_stores.ids(tenant):
            found = await documents.find_all(tenant, [(store_id, file_id) for store_id in store_ids])
            for store_id, _ in found:
                if time.monotonic() >= deadline:
                    return False
                marked = await documents.mark_detached(tenant, store_id, file_id)
                if marked is not None:
                    await self.remove_document(tenant, store_id, marked)
        return True


def refuse_held(found: StoredDocument) -> None:
    """Raise WriteInProgress for a document whose lease is held."""
    if found.held:
        raise WriteInProgress(f"File {found.key} is still being written. {LATER}")
