"""Tasks that ingest documents, and their sending.

A document is stored and a task is sent, and a process may die between the two. So a delayed task goes first
(`announce`): it finds either no document, or one that a worker has begun, and does nothing, or it ingests what would
otherwise wait for ever. The task without delay follows, and does the work in nearly all cases.
"""

from collections.abc import Awaitable, Callable, Sequence

from stint.caller import find_principal
from stint.dataclasses import dataclass
from stint.domain.tasks import MARK_DELAY, DeletionTask, IngestionTask
from stint.store.parallel import map_concurrently

DOCUMENTS_PER_TASK = 10
"""Documents of a task at most. A message per document would cost more than ingesting a small one."""

SendKnowledgeTask = Callable[[IngestionTask | DeletionTask], Awaitable[None]]
"""A function that sends a task to the worker's queue. Raises StoreUnavailable."""


@dataclass(frozen=True, slots=True)
class IngestionTasks:
    """Sends documents of a tenant's vector stores to the worker, which ingests them for the current caller."""

    tenant: str
    send: SendKnowledgeTask

    async def send_documents(self, store_id: str, documents: Sequence[str]) -> None:
        """Send the tasks of documents, each for up to ten. Raises StoreUnavailable."""
        await map_concurrently(lambda part: self.send_part(store_id, part), parts_of(documents))

    async def announce(self, store_id: str, documents: Sequence[str]) -> None:
        """Send the delayed tasks of documents before they are stored. They ingest what no worker has begun by then.

        Raises StoreUnavailable.
        """
        await map_concurrently(lambda part: self.send_part(store_id, part, early=True), parts_of(documents))

    async def send_alone(self, store_id: str, documents: Sequence[str]) -> None:
        """Send a task for each of some documents. Raises StoreUnavailable."""
        await map_concurrently(lambda document: self.send_part(store_id, [document]), documents)

    async def send_part(self, store_id: str, documents: Sequence[str], *, early: bool = False) -> None:
        # The worker acts for the creator: its budgets are charged, and its key can be stopped.
        principal = find_principal()
        task = IngestionTask(
            tenant=self.tenant,
            vector_store_id=store_id,
            documents=list(documents),
            creator=principal.to_context() if principal is not None else None,
            unstarted_only=early,
            delay_seconds=MARK_DELAY if early else 0,
        )
        await self.send(task)


def parts_of(documents: Sequence[str]) -> Sequence[Sequence[str]]:
    """Return the documents of each task."""
    return [documents[at : at + DOCUMENTS_PER_TASK] for at in range(0, len(documents), DOCUMENTS_PER_TASK)]
