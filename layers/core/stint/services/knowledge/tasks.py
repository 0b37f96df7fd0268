"""Tasks that ingest documents, and their sending."""

from collections.abc import Awaitable, Callable, Sequence

from stint.caller import find_principal
from stint.dataclasses import dataclass
from stint.domain.tasks import DeletionTask, IngestionTask
from stint.store.parallel import map_concurrently

DOCUMENTS_PER_TASK = 10

SendKnowledgeTask = Callable[[IngestionTask | DeletionTask], Awaitable[None]]
"""A function that sends a task to the worker's queue. Raises StoreUnavailable."""


@dataclass(frozen=True, slots=True)
class IngestionTasks:
    """Sends documents of a tenant's vector stores to the worker, which ingests them for the current caller."""

    tenant: str
    send: SendKnowledgeTask

    async def send_documents(self, store_id: str, documents: Sequence[str]) -> None:
        """Send the tasks of documents, each for up to ten. Raises StoreUnavailable."""
        parts = [documents[at : at + DOCUMENTS_PER_TASK] for at in range(0, len(documents), DOCUMENTS_PER_TASK)]
        await map_concurrently(lambda part: self.send_part(store_id, part), parts)

    async def send_alone(self, store_id: str, documents: Sequence[str]) -> None:
        """Send a task for each of some documents. Raises StoreUnavailable."""
        await map_concurrently(lambda document: self.send_part(store_id, [document]), documents)

    async def send_part(self, store_id: str, documents: Sequence[str]) -> None:
        principal = find_principal()
        creator = principal.to_context() if principal is not None else None
        await self.send(
            IngestionTask(tenant=self.tenant, vector_store_id=store_id, documents=list(documents), creator=creator)
        )
