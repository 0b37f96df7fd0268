"""The numbers of a store's documents, counted when they are read."""

import time
from collections import Counter
from collections.abc import AsyncGenerator, Iterable, Sequence
from dataclasses import dataclass

from stint.domain.vector_stores import FileCounts, LastError, StoreUsage
from stint.services.knowledge.tasks import IngestionTasks
from stint.store.store import Store
from stint.store.stored_documents import StoredDocument
from stint.store.vector_stores import StoredVectorStore

REQUEUE_SECONDS = 1_200
"""Seconds after which a document that no worker has is sent again: its task was lost, or its attempts failed."""

MAX_REQUEUES = 3

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
        if store.usage is not None:
            return store.usage
        documents = [each async for each in self.read_live(store.id)]
        usage = StoreUsage(file_counts=count(documents), usage_bytes=sum(each.usage_bytes for each in documents))
        if not usage.file_counts.in_progress:
            await self.store.vector_stores.put_usage(self.tenant, store, usage)
        await self.requeue(store.id, documents)
        return usage

    async def read_live(self, store_id: str) -> AsyncGenerator[StoredDocument, None]:
        async for document in self.store.vector_store_documents.read(self.tenant, store_id):
            if not document.deleted:
                yield document

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


def is_lost(document: StoredDocument) -> bool:
    idle = time.time() - document.queued_at >= REQUEUE_SECONDS
    return (document.status == "in_progress" or document.unindexed) and not document.held and idle


def count(documents: Sequence[StoredDocument]) -> FileCounts:
    """Return the numbers of documents by status."""
    counted = Counter[str](document.status for document in documents)
    return FileCounts(**counted, total=len(documents))
