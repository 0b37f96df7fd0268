"""Deletions of marked objects, finished in the request or by the worker."""

import logging
import time
from collections.abc import Awaitable, Callable, Mapping

from stint.dataclasses import dataclass
from stint.domain.errors import StintError
from stint.domain.tasks import DeletionTask, ObjectKind, SendTask
from stint.store.store import Store

logger = logging.getLogger(__name__)

DeleteObject = Callable[[DeletionTask, float], Awaitable[bool]]
"""A function that deletes a task's object until a deadline on the monotonic clock, and returns whether it is done."""

Mark = Callable[[], Awaitable[object]]
"""A function that hides an object from all reads. Raises NotFound if there is none."""

REQUEST_SECONDS = 20.0
"""Maximum seconds of a deletion in a request, before the worker gets the rest."""


@dataclass(frozen=True, slots=True)
class Deletions:
    """Deletes objects of the kinds that the composition passes in. The worker finishes those that take too long."""

    kinds: Mapping[ObjectKind, DeleteObject]
    send: SendTask
    request_seconds: float = REQUEST_SECONDS

    async def start_deletion(self, task: DeletionTask, mark: Mark) -> None:
        """Hide an object, and delete it for `request_seconds` at most. The worker gets the rest, also after a failure.

        Its task is sent before the mark, so that a deletion that breaks off at any point is finished.

        Raises:
            NotFound: there is no such object.
            StoreUnavailable: the queue does not accept the task, or the store failed before the object was hidden.
        """
        await self.send(task.before_mark())
        await mark()
        try:
            await self.continue_deletion(task, self.request_seconds)
        except StintError as error:
            logger.warning("The deletion failed: the worker will retry it", extra={"error": error.message})

    async def continue_deletion(self, task: DeletionTask, seconds: float) -> None:
        """Delete for `seconds` at most, and send the rest to the worker. May be repeated after any failure.

        Raises:
            NotMarkedDeleted: the object has no mark; nothing was deleted.
            StintError: the store failed.
        """
        if not await self.kinds[task.object_kind](task, time.monotonic() + seconds):
            extra = task.model_dump(exclude={"kind", "tenant"})
            logger.info("The worker continues the deletion", extra=extra)
            await self.send(task)


def delete_named_store(tenant: str, store: Store, send: SendTask) -> Callable[[str], Awaitable[None]]:
    """Return a function that a request calls to delete a vector store. Raises NotFound if there is none.

    The task is sent before the mark: a request is not repeated, so nothing else would finish a deletion that breaks
    off between the two.
    """

    async def delete(store_id: str) -> None:
        task = DeletionTask(kind="delete_vector_store", tenant=tenant, vector_store_id=store_id)
        await send(task.before_mark())
        await store.vector_stores.mark_deleted(tenant, store_id)

    return delete


def delete_store_of_session(store: Store, send: SendTask) -> Callable[[str, str], Awaitable[None]]:
    """Return a function that the deletion of a session calls to delete the session's own vector db.

    The task is sent after the mark: the session's deletion is repeated until it ends, so it sends a task that is
    lacking. Only the mark tells whether there is a store, because a session names its db before creating it.
    """

    async def delete(tenant: str, store_id: str) -> None:
        if await store.vector_stores.seal(tenant, store_id):
            await send(DeletionTask(kind="delete_vector_store", tenant=tenant, vector_store_id=store_id))

    return delete
