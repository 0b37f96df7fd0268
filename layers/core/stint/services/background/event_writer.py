"""Storing of a running response's stream in batches of events.

Readers get an event only from the table, so its number is fixed when its batch is stored. Deltas of one text that wait
for the next batch are joined, which changes neither the text nor the order: a batch costs a write unit for each
kilobyte, and a model may send a hundred deltas in a second. A batch is written under the worker's lease of the stream,
so that an overtaken worker adds nothing. An error of a write is raised at the next event, and not retried here: the
next attempt continues from the stored events.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress

from stint.domain.errors import StintError
from stint.domain.openai.item_events import (
    OutputTextDelta,
    ReasoningSummaryTextDelta,
    ReasoningTextDelta,
    RefusalTextDelta,
    padding_of,
)
from stint.domain.openai.response_events import ResponseEvent
from stint.store.background import BackgroundStore

FLUSH_SECONDS = 0.3
"""Seconds between batches. Successive deltas of one text are joined."""


TEXTS = (OutputTextDelta, RefusalTextDelta, ReasoningTextDelta, ReasoningSummaryTextDelta)


class StreamWriter:
    """Numbers the events of a response and stores them before anyone can see them. `first` is the next number.

    Without `background`, none is stored.
    """

    def __init__(
        self,
        background: BackgroundStore | None,
        tenant: str,
        response_id: str,
        first: int,
        lease_id: str = "",
        expires_at: int | None = None,
    ) -> None:
        self.background = background
        self.tenant = tenant
        self.response_id = response_id
        self.next = first
        self.lease_id = lease_id
        self.expires_at = expires_at
        self.pending: list[ResponseEvent] = []
        self.closing = asyncio.Event()
        self.error: StintError | None = None

    def add_events(self, events: Iterable[ResponseEvent]) -> None:
        """Add events. Those of one call are stored together.

        Raises:
            StintError: earlier ones could not be stored.
        """
        if self.error is not None:
            raise self.error
        for event in events:
            if not (self.pending and joined(self.pending[-1], event)):
                self.pending.append(event)

    @asynccontextmanager
    async def flushing(self) -> AsyncIterator[None]:
        """Store events while the body runs, and the rest when it ends or fails.

        Raises:
            Interrupted: another worker writes the stream, or the response was deleted.
            StoreUnavailable: the store failed.
        """
        task = asyncio.create_task(self.keep_flushing())
        try:
            yield
        except StintError:
            await self.close(task)
            with suppress(StintError):
                await self.flush()
            raise
        finally:
            await self.close(task)
        if self.error is not None:
            raise self.error
        await self.flush()

    async def close(self, task: "asyncio.Task[None]") -> None:
        self.closing.set()
        await asyncio.wait({task})

    async def keep_flushing(self) -> None:
        closing = asyncio.create_task(self.closing.wait())
        try:
            while not self.closing.is_set():
                await self.flush()
                await asyncio.wait({closing}, timeout=FLUSH_SECONDS)
        except StintError as error:
            self.error = error
        finally:
            closing.cancel()

    async def flush(self) -> None:
        """Store the events so far."""
        events, self.pending = self.pending, []
        if not events or self.background is None:
            return
        for number, event in enumerate(events, self.next):
            event.sequence_number = number
        texts = [event.model_dump_json() for event in events]
        await self.background.put_events(
            self.tenant, self.response_id, self.next, texts, lease_id=self.lease_id, expires_at=self.expires_at
        )
        self.next += len(events)


def joined(last: ResponseEvent, event: ResponseEvent) -> bool:
    """Join a delta to the previous one if both belong to the same text."""
    if not isinstance(last, TEXTS) or not isinstance(event, type(last)) or last.item_id != event.item_id:
        return False
    last.delta += event.delta
    if last.obfuscation is not None:
        last.obfuscation = padding_of(last.delta)
    return True
