"""The numbers of a store's documents, counted when they are read."""

import time
from collections import Counter
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from stint.domain.errors import NotFound
from stint.domain.tasks import DeletionTask
from stint.domain.vector_stores import FileCounts, LastError, StoreUsage
from stint.services.knowledge.tasks import IngestionTasks
from stint.store.store import Store
from stint.store.stored_documents import StoredDocument
from stint.store.vector_stores import StoredVectorStore

REQUEUE_SECONDS = 1_200
"""Seconds after which a document that no worker has is sent again: its task was lost, or its attempts failed."""

MAX_REQUEUES = 3

EXPIRED_AT_ONCE = 20
"""Documents of expired files that one read of a store gives to the worker."""

LOST = LastError(
    code="server_error", message="The file was sent to the worker several times and never ingested. Add it again."
)


@dataclass(frozen=True, slots=True)
class UsageCounter:
    """Counts the documents of a tenant's stores, and sends those again whose tasks were lost."""

    tenant: str
    store: Store
    tasks: IngestionTasks

    async def of(self, store: StoredVectorStore) -> StoreUsage:
        """Return the usage of a store. It is kept in the store's record once no document is in progress."""
        if store.usage is not None and not is_outdated(store.usage):
            return store.usage
        documents = [each async for each in self.read_live(store.id)]
        usage = StoreUsage(
            file_counts=count(documents),
            usage_bytes=sum(each.usage_bytes for each in documents),
            valid_until=min((end for each in documents if (end := each.settings.expires_at)), default=None),
        )
        if not usage.file_counts.in_progress:
            await self.store.vector_stores.put_usage(self.tenant, store, usage)
        await self.requeue(store.id, documents)
        return usage

    async def read_live(self, store_id: str) -> AsyncGenerator[StoredDocument, None]:
        """Read the documents of a store. The worker deletes those whose files have expired, some at a time."""
        expired = 0
        async for document in self.store.vector_store_documents.read(self.tenant, store_id):
            if document.expired and expired < EXPIRED_AT_ONCE:
                expired += 1
                await self.delete_expired(store_id, document.key)
            if not document.deleted:
                yield document

    async def delete_expired(self, store_id: str, document: str) -> None:
        task = DeletionTask(
            kind="delete_store_document", tenant=self.tenant, vector_store_id=store_id, document=document
        )
        await self.tasks.send(task)
        with suppress(NotFound):
            await self.store.vector_store_documents.mark_deleted(self.tenant, store_id, document)

    async def requeue(self, store_id: str, documents: Iterable[StoredDocument]) -> None:
        """Send documents again that should have been ingested long ago. After several times, they fail."""
        lost: list[str] = []
        for document in documents:
            if not is_lost(document):
                continue
            if document.requeues >= MAX_REQUEUES:
                await self.store.vector_store_documents.fail(self.tenant, store_id, document, LOST)
            elif await self.store.vector_store_documents.claim_requeue(self.tenant, store_id, document):
                lost.append(document.key)
        if lost:
            await self.tasks.send_documents(store_id, lost)


def is_outdated(usage: StoreUsage) -> bool:
    """Return whether a document has expired since the usage was counted."""
    return usage.valid_until is not None and usage.valid_until <= time.time()


def is_lost(document: StoredDocument) -> bool:
    idle = time.time() - document.queued_at >= REQUEUE_SECONDS
    return (document.status == "in_progress" or document.unindexed) and not document.held and idle


def count(documents: Sequence[StoredDocument]) -> FileCounts:
    """Return the numbers of documents by status."""
    counted = Counter[str](document.status for document in documents)
    return FileCounts(**counted, total=len(documents))
