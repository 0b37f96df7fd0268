"""Deletions of what is marked as deleted: finished in the request, or by the worker."""

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from stint.domain.errors import StintError
from stint.domain.tasks import DeletionTask, ObjectKind

logger = logging.getLogger(__name__)

DeleteObject = Callable[[DeletionTask, float], bool]
"""Deletes the object of a task until a deadline on the monotonic clock, and returns whether nothing is left to do."""

SendTask = Callable[[DeletionTask], None]
"""Sends a task to the worker's queue, where it is done at least once. Raises StoreUnavailable."""

REQUEST_SECONDS = 20.0
"""How long a request waits for its deletion before the worker gets the rest."""


@dataclass(frozen=True, slots=True)
class Deletions:
    """Deletes objects of the kinds that the composition passes in. The worker gets what takes too long."""

    kinds: Mapping[ObjectKind, DeleteObject]
    send: SendTask
    request_seconds: float = REQUEST_SECONDS

    def start_deletion(self, task: DeletionTask) -> None:
        """Delete for `request_seconds` at most; the worker gets what is left, also when the store fails.

        Raises:
            StoreUnavailable: the queue does not take the task.
        """
        try:
            self.continue_deletion(task, self.request_seconds)
        except StintError as error:
            logger.warning("The deletion failed: the worker tries again", extra={"error": error.message})
            self.send(task)

    def continue_deletion(self, task: DeletionTask, seconds: float) -> None:
        """Delete for `seconds` at most, and send the rest to the worker. May be repeated after any failure.

        Raises:
            NotMarkedDeleted: the object has no mark; nothing was deleted.
            StintError: the store failed.
        """
        if not self.kinds[task.object_kind](task, time.monotonic() + seconds):
            extra = task.model_dump(exclude={"kind", "tenant"}, exclude_none=True)
            logger.info("The deletion goes on in the worker", extra=extra)
            self.send(task)
