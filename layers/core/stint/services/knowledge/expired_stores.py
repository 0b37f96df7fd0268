"""Vector stores that have expired: they cannot be used, and the worker deletes their contents.

Nothing runs at the time when a store expires. The first reader who finds it expired sends the task. Several readers may
do so at once, which does no harm: a deletion of contents that are gone finds nothing.
"""

from stint.dataclasses import dataclass
from stint.domain.errors import InvalidRequest
from stint.domain.tasks import DeletionTask
from stint.services.knowledge.tasks import SendKnowledgeTask
from stint.store.store import Store
from stint.store.vector_stores import StoredVectorStore


@dataclass(frozen=True, slots=True)
class ExpiredStores:
    """The expired vector stores of a tenant, whose contents are deleted once they are read."""

    tenant: str
    store: Store
    send: SendKnowledgeTask

    async def delete_contents(self, stored: StoredVectorStore) -> None:
        """Send the task that deletes the contents of a store, if it has expired and no reader has sent it."""
        if not stored.expired or stored.emptied:
            return
        # The task is sent first: if that fails, the next reader sends it.
        await self.send(DeletionTask(kind="delete_store_contents", tenant=self.tenant, vector_store_id=stored.id))
        await self.store.vector_stores.mark_emptied(self.tenant, stored)


def refuse_expired(store: StoredVectorStore) -> None:
    """Raise InvalidRequest for a store that has expired."""
    if store.expired:
        raise InvalidRequest(f"Vector store {store.id!r} has expired. Create another one.", code="vector_store_expired")
