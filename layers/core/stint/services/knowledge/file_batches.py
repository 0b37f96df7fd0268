"""File batches of vector stores: add many files at once, follow and cancel them.

A batch is a record with its id, and the files name their last batch. So a batch has no state of its own but
`cancelled`; its status is that of its files, counted when it is read:

  record      files                    status
  live        some are in progress     in_progress
  live        all have ended           completed, also if some failed: `file_counts` has how many
  cancelled   any                      cancelled

The record is written with the first files. A repeated request adds the files again, which changes nothing for those
that are there, and so completes a request that died in between; that of a cancelled batch adds none.
"""

from contextlib import suppress

from stint.caller import end_users_of, find_attempt, next_object_id
from stint.dataclasses import dataclass
from stint.domain.errors import InvalidRequest, NotFound
from stint.domain.ids import name_of
from stint.domain.openai.vector_stores import CreateFileBatch, FileBatch, VectorStoreFileList
from stint.domain.vector_stores import DocumentSettings, DocumentStatus
from stint.services.knowledge.expired_stores import refuse_expired
from stint.services.knowledge.store_documents import StoreDocuments
from stint.services.knowledge.usage import UsageCounter
from stint.store.parallel import map_concurrently
from stint.store.store import Store
from stint.store.stored_documents import StoredDocument
from stint.store.vector_stores import Order, StoredFileBatch, StoredVectorStore


@dataclass(frozen=True, slots=True)
class FileBatches:
    """The file batches of a tenant's vector stores. Unknown ids raise NotFound."""

    tenant: str
    store: Store
    documents: StoreDocuments
    usage: UsageCounter

    async def create(self, store_id: str, request: CreateFileBatch) -> FileBatch:
        """Add files to a store. Those that it has already are counted in this batch.

        A repeated request with the same idempotency key returns the first one's batch, with all of its files.

        Raises:
            InvalidRequest: there are no files, or both `file_ids` and `files`.
            NotFound: one of the files does not exist. None is added.
        """
        store = await self.documents.open(store_id)
        refuse_expired(store)
        files, batch_id = await self.prepare(store, request), name_of("vsfb", next_object_id())
        stored = await self.find_repeated(store_id, batch_id)
        if stored is None or not stored.cancelled:
            record = self.store.file_batches.make(self.tenant, store_id, batch_id)
            await self.documents.insertions.insert(store_id, files, record, end_users_of())
        return await self.get(store_id, batch_id)

    async def find_repeated(self, store_id: str, batch_id: str) -> StoredFileBatch | None:
        """Return the batch that an earlier request with the same idempotency key has stored."""
        if find_attempt().repeated:
            with suppress(NotFound):
                return await self.store.file_batches.get(self.tenant, store_id, batch_id)
        return None

    async def prepare(self, store: StoredVectorStore, request: CreateFileBatch) -> dict[str, DocumentSettings]:
        """Return the settings of a batch's files, each with its own or those of the batch."""
        if bool(request.file_ids) is bool(request.files):
            raise InvalidRequest("A file batch needs either file_ids or files.", param="file_ids")
        chunking = request.chunking_strategy or store.settings.chunking
        if request.file_ids:
            return await self.documents.prepare(request.file_ids, chunking, request.attributes)
        prepared = await self.documents.prepare([file.file_id for file in request.files], chunking)
        return {
            file.file_id: prepared[file.file_id].model_copy(
                update={
                    "attributes": file.attributes or request.attributes or {},
                    "chunking": file.chunking_strategy or chunking,
                }
            )
            for file in request.files
        }

    async def get(self, store_id: str, batch_id: str) -> FileBatch:
        """Read a batch, and count its files."""
        store = await self.documents.open(store_id)
        batch = await self.store.file_batches.get(self.tenant, store_id, batch_id)
        return await self.to_resource(store, batch)

    async def to_resource(self, store: StoredVectorStore, batch: StoredFileBatch) -> FileBatch:
        counts = await self.usage.count_batch(store, batch.id)
        status: DocumentStatus = "in_progress" if counts.in_progress else "completed"
        return FileBatch(
            id=batch.id,
            created_at=batch.created_at,
            vector_store_id=store.id,
            status="cancelled" if batch.cancelled else status,
            file_counts=counts,
        )

    async def list_files(
        self,
        store_id: str,
        batch_id: str,
        after: str | None,
        before: str | None,
        limit: int,
        order: Order,
        status: DocumentStatus | None = None,
    ) -> VectorStoreFileList:
        """List the files of a batch."""
        await self.store.file_batches.get(self.tenant, store_id, batch_id)
        return await self.documents.list(store_id, after, before, limit, order=order, status=status, batch_id=batch_id)

    async def cancel(self, store_id: str, batch_id: str) -> FileBatch:
        """Cancel the files of a batch that are in progress. Those that are completed stay."""
        await self.documents.open(store_id)
        # The record first: a repeated creation that comes later adds no files.
        await self.store.file_batches.cancel(self.tenant, store_id, batch_id)

        async def cancel_document(found: StoredDocument) -> bool:
            return await self.store.vector_store_documents.cancel(self.tenant, store_id, found.key)

        every = (await self.usage.read(store_id)).live
        waiting = [each for each in every if each.batch_id == batch_id and each.status == "in_progress"]
        await map_concurrently(cancel_document, waiting)
        # The files have changed, and the record of the store does not show it.
        self.usage.recent.forget()
        return await self.get(store_id, batch_id)
