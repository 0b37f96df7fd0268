"""Changes of the attributes of documents, whose chunks keep their vectors."""

import asyncio

from stint.dataclasses import dataclass
from stint.domain.vector_stores import DocumentSettings
from stint.loop.lease_keeper import LeaseKeeper, lease_span
from stint.retrieval.port import VectorIndex
from stint.services.knowledge.entries import chunk_keys
from stint.store.document_leases import DocumentLease
from stint.store.keys import vector_index
from stint.store.store import Store
from stint.store.stored_documents import StoredDocument

UPDATE_SECONDS = 300
"""Longest time for which the lease of an update is renewed."""

CHUNKS_AT_ONCE = 1_000


@dataclass(frozen=True, slots=True)
class AttributeUpdates:
    """Replaces the attributes of a tenant's documents: first in the record, then in the index, under a lease."""

    tenant: str
    store: Store
    index: VectorIndex
    lease_seconds: float

    async def update(self, store_id: str, found: StoredDocument, settings: DocumentSettings) -> None:
        """Write the attributes of `settings` for a completed document. When this returns, filters find them.

        Raises:
            NotFound: the document was deleted.
            Conflict: it is being ingested, or changed by another request.
            StintError: the index may have the old attributes. A repetition finishes the update.
        """
        clock = asyncio.get_running_loop().time
        asked, deadline = clock(), clock() + UPDATE_SECONDS
        span = lease_span(self.lease_seconds, deadline)
        # The record first: from now on no search finds the document by its old attributes. `unindexed` in it makes the
        # worker finish an update whose process died.
        lease = await self.store.document_leases.update(self.tenant, store_id, found, settings, seconds=span)
        keeper = LeaseKeeper(lease, self.lease_seconds, deadline, asked + span)
        async with keeper.released_on_error():
            await self.write(store_id, keeper)
            keeper.check()
            await lease.complete_update()
        keeper.stop()

    async def write(self, store_id: str, keeper: LeaseKeeper[DocumentLease]) -> None:
        """Write the attributes of all chunks that searches find."""
        document, name = keeper.lease.document, vector_index(self.tenant, store_id)
        generation = keeper.lease.generation
        keys = chunk_keys(document.key, generation, document.generations.get(generation, 0))
        for at in range(0, len(keys), CHUNKS_AT_ONCE):
            # A lost lease means that an ingestion may have replaced these chunks.
            keeper.check()
            await self.index.update_attributes(name, keys[at : at + CHUNKS_AT_ONCE], document.settings.attributes)
