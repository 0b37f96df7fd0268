"""Deletions: marked at once, finished here or by the worker."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from stint.domain.errors import StintError
from stint.domain.tasks import AnyDeletionTask, DeletionTask
from stint.store.deletion import Deletion

logger = logging.getLogger(__name__)

Leave = Callable[[AnyDeletionTask], None]
"""Hands what is left of a deletion to the worker."""

PATIENCE_SECONDS = 20.0


class Worker(Protocol):
    """The function that does what a request has no time for."""

    def leave(self, task: DeletionTask) -> None:
        """Hand a task over; it is done at least once.

        Raises:
            StoreUnavailable: the worker cannot be reached.
        """
        ...


@dataclass(frozen=True, slots=True)
class Deletions:
    """Deletes what is marked, children before the parent, and leaves to the worker what takes too long."""

    deletion: Deletion
    worker: Worker

    def finish(self, task: DeletionTask, seconds: float = PATIENCE_SECONDS) -> None:
        """Delete for `seconds` at most; what is left, or fails, is the worker's.

        Raises:
            StoreUnavailable: the worker cannot be reached.
        """
        try:
            self.proceed(task, seconds)
        except StintError as error:
            logger.warning("The deletion failed: the worker tries again", extra={"error": error.message})
            self.worker.leave(task)

    def proceed(self, task: DeletionTask, seconds: float) -> None:
        """Delete for `seconds` at most, and leave the rest to the worker. May be repeated after any failure.

        Raises:
            StintError: the store failed.
        """
        deadline = time.monotonic() + seconds
        if task.session_id is None:
            done = self.deletion.delete_agent(task.tenant, task.agent_id, deadline)
        else:
            done = self.deletion.delete_session(task.tenant, task.agent_id, task.session_id, deadline)
        if not done:
            logger.info("The deletion goes on in the worker", extra={"agent_id": task.agent_id})
            self.worker.leave(task)
