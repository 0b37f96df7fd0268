"""A turn that one task starts and runs to its end, for a caller who is not that of the current request.

The caller, the meter and the signals of a run are context variables, so its start and all its events need one task.
The task is not cancelled with the reader of the events: a client that closes its stream stops nothing. It keeps the
events of a reader that is slow or gone, and ends with the turn.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import TypeAlias

from stint.domain.llama_stack.events import NumberedEvent
from stint.domain.llama_stack.stored_turns import StoredTurn
from stint.services.runs.run_handle import END, End
from stint.services.runs.senders import acting_for
from stint.services.turns.turn_handles import StartedTurn

EventQueue: TypeAlias = asyncio.Queue[NumberedEvent | End]

StartTurn = Callable[[], Awaitable[StartedTurn | None]]


class DetachedTurn:
    """A turn with its task. It has one reader. `turn` is what is stored of it, and grows while it runs."""

    def __init__(self, turn: StoredTurn, queue: EventQueue, task: "asyncio.Task[None]") -> None:
        self.turn = turn
        self._queue = queue
        self._task = task

    async def events(self) -> AsyncGenerator[NumberedEvent, None]:
        """Yield the events of the turn since its start, or since it was resumed. Closing this stops nothing."""
        while not isinstance(event := await self._queue.get(), End):
            yield event

    async def wait(self) -> None:
        """Wait until all is done that follows the end of the turn, or its pause. Nothing is raised."""
        await asyncio.wait({self._task})


async def start_detached(
    start: StartTurn, creator: Mapping[str, str] | None, end_user: str | None
) -> DetachedTurn | None:
    """Start a turn for the caller of `acting_for`, in a task that runs it to its end; None if `start` returns that.

    Raises as `start`.
    """
    queue: EventQueue = asyncio.Queue()
    started: asyncio.Future[StartedTurn | None] = asyncio.get_running_loop().create_future()

    async def run() -> None:
        with acting_for(creator, end_user):
            try:
                handle = await start()
            except BaseException as error:  # noqa: BLE001 - whoever waits for the start raises it
                started.set_exception(error)
                return
            started.set_result(handle)
            if handle is not None:
                try:
                    await put_events(handle, queue)
                finally:
                    queue.put_nowait(END)
                await handle.finish()
                await handle.send_trace()

    task = asyncio.create_task(run())
    handle = await asyncio.shield(started)
    return None if handle is None else DetachedTurn(handle.turn, queue, task)


async def put_events(handle: StartedTurn, queue: EventQueue) -> None:
    async with aclosing(handle.announced_events()) as events:
        async for event in events:
            queue.put_nowait(event)
