"""The numbers of a store's documents, counted when they are read.

Counters that each write changes would be a bottleneck of a store, and wrong after a lost answer. So documents are
counted by reading them all, and the result is kept:

  documents                kept
  none is changing         in the store's record, until they are changed
  some are in progress     in this process, for a second per 100 documents, at most 10
  fewer than 100           not at all: reading them is cheap, and the count is always current

Reading is also when lost work is found, since no other process looks for it:

  a document                                         is
  in progress, its lease lapsed                      sent again: its worker died
  in progress, free, queued 20 minutes ago           sent again: its task was lost, or its attempts failed
  sent again three times                             failed
  marked, and still there after 20 minutes           sent for deletion again
  of an expired file, not marked                     sent for deletion, and marked

A write with a condition decides which of several readers sends a document (`claim_requeue`).
"""

import time
from collections import Counter, OrderedDict
from collections.abc import Iterable, Sequence
from contextlib import suppress

from stint.dataclasses import dataclass, field, replace
from stint.domain.errors import NotFound
from stint.domain.tasks import DeletionTask
from stint.domain.vector_stores import FileCounts, LastError, StoreUsage
from stint.services.knowledge.tasks import IngestionTasks
from stint.store.parallel import map_concurrently
from stint.store.store import Store
from stint.store.stored_documents import StoredDocument
from stint.store.vector_stores import StoredVectorStore

REQUEUE_SECONDS = 1_200
"""Seconds after which a document that no worker has is sent again: its task was lost, or its attempts failed."""

MAX_REQUEUES = 3
"""How often a document is sent again before it fails."""

DOCUMENTS_PER_SECOND = 100
"""A count is kept for a second per so many documents. That of a small store is always current."""

MAX_SECONDS = 10.0
"""Longest time for which a count is kept in this process."""
MAX_COUNTS = 256
"""Counts that this process keeps."""

DELETED_AT_ONCE = 20
"""Documents that one read of a store gives to the worker for their deletion."""

LOST = LastError(
    code="server_error", message="The file was sent to the worker several times and never ingested. Add it again."
)


@dataclass(slots=True)
class RecentCounts:
    """Counts of documents in progress, by store and batch, so that polling does not read all documents each time.

    A change of the store's documents by a request outdates one. Those that the worker completes or fails are counted
    when the time is over.
    """

    _counts: "OrderedDict[tuple[str, str], tuple[str, float, StoreUsage]]" = field(default_factory=OrderedDict)

    def get(self, store_id: str, batch_id: str, change_id: str) -> StoreUsage | None:
        seen, until, usage = self._counts.get((store_id, batch_id), ("", 0.0, None))
        return usage if seen == change_id and time.monotonic() < until else None

    def put(self, store_id: str, batch_id: str, change_id: str, usage: StoreUsage, documents: int) -> None:
        """Keep a count for which so many documents were read."""
        until = time.monotonic() + min(documents // DOCUMENTS_PER_SECOND, MAX_SECONDS)
        self._counts[store_id, batch_id] = (change_id, until, usage)
        self._counts.move_to_end((store_id, batch_id))
        while len(self._counts) > MAX_COUNTS:
            self._counts.popitem(last=False)

    def forget(self) -> None:
        """Forget all counts: documents were changed in a way that the store's record does not show."""
        self._counts.clear()


@dataclass(frozen=True, slots=True)
class CountedDocuments:
    """The documents of a store that exist, and how many records were read. `deleting`: there are others."""

    live: list[StoredDocument]
    read: int
    deleting: bool

    @property
    def usage(self) -> StoreUsage:
        return StoreUsage(
            file_counts=count(self.live),
            usage_bytes=sum(each.usage_bytes for each in self.live),
            valid_until=min((end for each in self.live if (end := each.settings.expires_at)), default=None),
        )


@dataclass(frozen=True, slots=True)
class UsageCounter:
    """Counts the documents of a tenant's stores, and sends those again whose tasks were lost."""

    tenant: str
    store: Store
    tasks: IngestionTasks
    recent: RecentCounts = field(default_factory=RecentCounts)

    async def count_store(self, store: StoredVectorStore) -> StoreUsage:
        """Return the usage of a store. It is kept in the store's record once no document is changing."""
        if store.usage is not None and not is_outdated(store.usage):
            return store.usage
        if recent := self.recent.get(store.id, "", store.change_id):
            return recent
        documents = await self.read(store.id)
        usage = documents.usage
        # Kept only when nothing changes by itself: the worker does not outdate a count in the record.
        if not usage.file_counts.in_progress and not documents.deleting:
            await self.store.vector_stores.put_usage(self.tenant, store, usage)
        else:
            self.recent.put(store.id, "", store.change_id, usage, documents.read)
        await self.requeue(store.id, documents.live)
        return usage

    async def count_batch(self, store: StoredVectorStore, batch_id: str) -> FileCounts:
        """Return the numbers of documents of a batch."""
        if recent := self.recent.get(store.id, batch_id, store.change_id):
            return recent.file_counts
        documents = await self.read(store.id)
        batch = replace(documents, live=[each for each in documents.live if each.batch_id == batch_id])
        self.recent.put(store.id, batch_id, store.change_id, batch.usage, documents.read)
        await self.requeue(store.id, batch.live)
        return batch.usage.file_counts

    async def read(self, store_id: str) -> CountedDocuments:
        """Read the documents of a store. The worker deletes those that should have been deleted, some at a time."""
        every = [each async for each in self.store.vector_store_documents.read(self.tenant, store_id)]
        deleted = [each for each in every if each.deleted]
        lost = [each for each in deleted if each.expired or is_deletion_lost(each)]
        await map_concurrently(lambda document: self.delete_again(store_id, document), lost[:DELETED_AT_ONCE])
        return CountedDocuments([each for each in every if not each.deleted], len(every), bool(deleted))

    async def delete_again(self, store_id: str, found: StoredDocument) -> None:
        """Send the deletion of a document that has expired, or that is marked as deleted since long ago."""
        # The task is sent first: if that fails, the next reader sends it.
        task = DeletionTask(
            kind="delete_store_document", tenant=self.tenant, vector_store_id=store_id, document=found.key
        )
        await self.tasks.send(task if found.deleted else task.before_mark())
        if not found.expired:
            await self.store.vector_store_documents.claim_deletion(self.tenant, store_id, found)
            return
        with suppress(NotFound):
            await self.store.vector_store_documents.mark_deleted(self.tenant, store_id, found.key, by_user=False)

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
    """Return whether a document's task must be sent again: its worker died, or no worker has had it for a long time."""
    if document.held or not (document.status == "in_progress" or document.unindexed):
        return False
    # A worker that lives releases its lease. After the document was sent again, the usual time counts.
    abandoned = document.lease_until is not None and document.lease_until > document.queued_at * 1000
    return abandoned or time.time() - document.queued_at >= REQUEUE_SECONDS


def is_deletion_lost(document: StoredDocument) -> bool:
    return document.deleted_at is not None and time.time() - document.deleted_at >= REQUEUE_SECONDS


def count(documents: Sequence[StoredDocument]) -> FileCounts:
    """Return the numbers of documents by status."""
    counted = Counter[str](document.status for document in documents)
    return FileCounts(**counted, total=len(documents))
