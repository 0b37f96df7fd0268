"""The chunks of documents in the index of their store: embedded and written in batches, and deleted.

A batch is the unit of progress: after each one, `progress.next_chunk` is where the next attempt continues. The keys of
chunks are made of the document, the generation and the chunk's number, so a batch that is written again after a lost
answer replaces itself.

Embedding may take long, and costs money: it is bounded by the worker's deadline, stopped with its creator's key, and
waits for the next minute if a budget of tokens is used up. Writing to the index is not stopped, since it goes on in its
thread whatever happens to its task.
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress

from stint.dataclasses import dataclass
from stint.domain.errors import DeadlineExceeded, NotFound
from stint.domain.vector_stores import IngestionProgress
from stint.loop.lease_keeper import LeaseKeeper, lease_span
from stint.retrieval.port import Entry, VectorIndex
from stint.run_stop import expiring_on_stop, raise_if_stopped
from stint.services.knowledge.contents import Chunk
from stint.services.knowledge.embedding_models import EmbeddingModels
from stint.services.knowledge.entries import chunk_keys, make_entries
from stint.services.knowledge.index_provider import index_of
from stint.spending.waiting import retry_next_minute
from stint.store.document_leases import DocumentLease
from stint.store.keys import vector_index
from stint.store.stored_documents import StoredDocument
from stint.store.vector_stores import StoredVectorStore

BATCH = 200
"""Chunks that are embedded and indexed at once."""
"""Chunks that are embedded and indexed at once."""

FLOAT_BYTES = 4

DocumentKeeper = LeaseKeeper[DocumentLease]


@dataclass(frozen=True, slots=True)
class ChunkWriter:
    """Writes and deletes chunks of a tenant's documents."""

    tenant: str
    index: VectorIndex
    models: EmbeddingModels

    async def write(
        self,
        store: StoredVectorStore,
        found: StoredDocument,
        chunks: Sequence[Chunk],
        progress: IngestionProgress,
        keeper: DocumentKeeper,
    ) -> None:
        """Embed and index chunks, the first one being `progress.next_chunk`, and note each batch in `progress`.

        Raises:
            Interrupted: the lease is lost.
            DeadlineExceeded: the time of the worker is over, or would be before the end of another batch.
            Stopped: an admin stopped the creator's key or the tenant.
            RateLimitExceeded, QuotaExceeded: a budget is used up.
        """
        clock, longest = asyncio.get_running_loop().time, 0.0
        while progress.next_chunk < len(chunks):
            began, at = clock(), progress.next_chunk
            # The longest batch so far is the estimate of the next one: one that does not end in time is paid for in
            # vain.
            refuse_late(began + longest, keeper.deadline)
            batch = chunks[at : at + BATCH]
            vectors = await self.embed_in_time(store, batch, keeper.deadline)
            entries = list(make_entries(found, progress.generation, at, batch, vectors=vectors))
            # After the embedding, which takes the longest: without the lease, another worker may write this document.
            keeper.check()
            await self.upsert(store, entries, keeper)
            progress.usage_bytes += sum(len(one.text.encode()) + FLOAT_BYTES * len(one.vector) for one in entries)
            progress.next_chunk, longest = at + len(batch), max(longest, clock() - began)

    async def embed_in_time(
        self, store: StoredVectorStore, chunks: Sequence[Chunk], deadline: float
    ) -> list[Sequence[float]]:
        """Return the vectors of chunks. Raises DeadlineExceeded, Stopped, RateLimitExceeded and QuotaExceeded.

        Only this call is stopped: an upsert would go on in its thread.
        """
        try:
            async with asyncio.timeout_at(deadline) as limit:
                with expiring_on_stop(limit):
                    return await retry_next_minute(lambda: self.embed(store, chunks), deadline)
        except TimeoutError:
            raise_if_stopped()
            refuse_late(deadline, deadline)
            raise

    async def embed(self, store: StoredVectorStore, chunks: Sequence[Chunk]) -> list[Sequence[float]]:
        """Return the vectors of chunks, made here for those that have none."""
        missing = [chunk.text for chunk in chunks if chunk.vector is None]
        made = iter(await self.models.embed(store.settings.embedding, missing) if missing else [])
        return [next(made) if chunk.vector is None else chunk.vector for chunk in chunks]

    async def upsert(self, store: StoredVectorStore, entries: Sequence[Entry], keeper: DocumentKeeper) -> None:
        """Write chunks, and create the index for the first ones of a store."""
        index = index_of(self.tenant, store)
        try:
            await self.index.upsert(index, entries)
        except NotFound:
            # A store that is being deleted keeps its record until the leases of its documents have ended.
            # The index of a store that is being deleted must not be created again. Only the renewal tells, so it is
            # asked here.
            keeper.check()
            await keeper.lease.renew(lease_span(keeper.seconds, keeper.deadline))
            await self.index.create(index, store.settings.embedding.dimension)
            await self.index.upsert(index, entries)

    async def delete(self, store_id: str, document: str, generations: Mapping[str, int]) -> None:
        """Delete the chunks of some generations of a document, by their numbers of chunks."""
        keys = [key for name, count in generations.items() for key in chunk_keys(document, name, count)]
        if keys:
            with suppress(NotFound):
                await self.index.delete(vector_index(self.tenant, store_id), keys)


def refuse_late(now: float, deadline: float) -> None:
    """Raise DeadlineExceeded if the worker has no time for another batch."""
    if now >= deadline:
        raise DeadlineExceeded(
            "The time limit of the worker was reached before any part of the file was ingested. Split the file, "
            "or raise WorkerTimeoutSeconds in the template."
        )
