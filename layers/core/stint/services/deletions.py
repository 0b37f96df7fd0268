"""Deletions of what is marked as deleted: finished here or by the worker."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from stint.domain.errors import StintError
from stint.domain.tasks import AnyDeletionTask, DeletionTask
from stint.store.deletion import Deletion

logger = logging.getLogger(__name__)

Leave = Callable[[AnyDeletionTask], None]
"""Puts a task into the worker's queue, where it is done at least once. Raises StoreUnavailable."""

Delete = Callable[[float], bool]
"""Deletes until a deadline on the monotonic clock, and returns whether nothing is left to do."""

PATIENCE_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Deletions:
    """Deletes agents and sessions, children before the parent, and leaves to the worker what takes too long."""

    deletion: Deletion
    leave: Leave

    def finish(self, task: DeletionTask, seconds: float = PATIENCE_SECONDS) -> None:
        """Delete for `seconds` at most; see `finish_deletion`."""
        finish_deletion(task, self.delete(task), self.leave, seconds)

    def proceed(self, task: DeletionTask, seconds: float) -> None:
        """Delete for `seconds` at most; see `proceed_deletion`."""
        proceed_deletion(task, self.delete(task), self.leave, seconds)

    def delete(self, task: DeletionTask) -> Delete:
        def run(deadline: float) -> bool:
            if task.session_id is None:
                return self.deletion.delete_agent(task.tenant, task.agent_id, deadline)
            return self.deletion.delete_session(task.tenant, task.agent_id, task.session_id, deadline)

        return run


def finish_deletion(task: AnyDeletionTask, delete: Delete, leave: Leave, seconds: float) -> None:
    """Delete for `seconds` at most; the worker gets what is left, also when the store fails.

    Raises:
        StoreUnavailable: the queue does not take the task.
    """
    try:
        proceed_deletion(task, delete, leave, seconds)
    except StintError as error:
        logger.warning("The deletion failed: the worker tries again", extra={"error": error.message})
        leave(task)


def proceed_deletion(task: AnyDeletionTask, delete: Delete, leave: Leave, seconds: float) -> None:
    """Delete for `seconds` at most, and leave the rest to the worker. May be repeated after any failure.

    Raises:
        NotMarkedDeleted: the object has no mark; nothing was deleted.
        StintError: the store failed.
    """
    if not delete(time.monotonic() + seconds):
        logger.info("The deletion goes on in the worker", extra=task.model_dump(exclude={"kind", "tenant"}))
        leave(task)
