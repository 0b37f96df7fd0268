"""Storing of a running step's events for readers who rejoin its stream, once the step takes long.

A complete step is in the log, and most steps are complete before anyone could rejoin. So only a step that runs for
PATIENCE_SECONDS is stored in parts, each of which costs a write. The parts are a copy for readers: whatever fails here
is logged, and the run goes on. A part is written only while the lease is valid. If it is lost, the parts are deleted,
because the session may have been deleted in the meantime. A part that could not be written is joined to the next one.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from stint.dataclasses import dataclass
from stint.domain.errors import Interrupted, StintError
from stint.domain.partial_steps import PartialStep
from stint.domain.run_events import LoopEvent, StepComplete, StepStart
from stint.loop.running_step import RunningStep
from stint.store.store import Store

if TYPE_CHECKING:
    from stint.store.partial_keys import PartialPlace

logger = logging.getLogger(__name__)

PATIENCE_SECONDS = 5.0
"""Seconds that a step runs before its first part is stored."""

FLUSH_SECONDS = 5.0
FLUSH_CHARACTERS = 1_000
"""After the first part, new pieces are stored when there are this many characters, or after this many seconds."""


@dataclass(frozen=True, slots=True)
class PartialStorage:
    """Where the parts of a run's steps are stored. `check` raises Interrupted after the run has lost its lease.

    `put` stores the part of a step with a number, from 0, and may be repeated with a longer part. It returns False for
    one that is too long. `discard` deletes the first parts of a step, as many as the number says.
    """

    check: Callable[[], None]
    put: Callable[[int, PartialStep], Awaitable[bool]]
    discard: Callable[[str, int], Awaitable[None]]


def make_storage(
    store: Store, find_place: Callable[[], "PartialPlace"], check: Callable[[], None], expires_at: int | None
) -> PartialStorage:
    """Return the storage of a run's parts. `expires_at` is that of its session or response."""
    return PartialStorage(
        check=check,
        put=lambda number, part: store.partial_steps.put(find_place(), number, part, expires_at),
        discard=lambda step_id, count: store.partial_steps.delete(find_place(), step_id, count),
    )


class PartialWriter:
    """Receives the events of a run, and stores parts of a step that runs long. Nothing is raised.

    A step that ends within PATIENCE_SECONDS is not stored here. Without `storage`, none is.
    """

    def __init__(self, running: RunningStep, storage: PartialStorage | None) -> None:
        self.running = running
        self.storage = storage
        self.full = asyncio.Event()
        self.closed = False
        self.timer: asyncio.TimerHandle | None = None
        self.tasks: set[asyncio.Task[None]] = set()

    def add_event(self, event: LoopEvent) -> None:
        """Add an event before it is sent."""
        self.running.add_event(event)
        if isinstance(event, StepStart | StepComplete):
            self.stop()
        if isinstance(event, StepStart) and self.storage is not None:
            loop = asyncio.get_running_loop()
            self.timer = loop.call_later(PATIENCE_SECONDS, self.begin, event.step_id, self.storage)
        if self.running.fresh >= FLUSH_CHARACTERS:
            self.full.set()

    def stop(self) -> None:
        """Store no more parts of the current step."""
        if self.timer is not None:
            self.timer.cancel()
        self.full.set()

    def begin(self, step_id: str, storage: PartialStorage) -> None:
        task = asyncio.create_task(self.keep_writing(step_id, storage))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def keep_writing(self, step_id: str, storage: PartialStorage) -> None:
        """Store the parts of a step until it ends or the lease is lost. The last one may lack."""
        number, unsent = 0, None
        while self.running.step_id == step_id and not self.closed:
            self.full.clear()
            part = self.running.take()
            unsent = unsent.extended(part) if unsent is not None and part is not None else part
            try:
                storage.check()
                if unsent is not None and (number == 0 or not unsent.is_empty):
                    if not await storage.put(number, unsent):
                        return
                    number, unsent = number + 1, None
            except Interrupted:
                await self.discard(step_id, number, storage)
                return
            except StintError as error:
                logger.warning("A part of a running step was not stored", extra={"error": error.message})
            with suppress(TimeoutError):
                async with asyncio.timeout(FLUSH_SECONDS):
                    await self.full.wait()

    async def discard(self, step_id: str, count: int, storage: PartialStorage) -> None:
        """Delete the parts of a step whose session or response may have been deleted."""
        try:
            await storage.discard(step_id, count)
        except StintError as error:
            logger.warning("Parts of a step were not deleted; they will expire", extra={"error": error.message})

    async def close(self) -> None:
        """Wait for the part that is being stored, when the run has ended."""
        self.closed = True
        self.stop()
        if self.tasks:
            await asyncio.wait(self.tasks)
