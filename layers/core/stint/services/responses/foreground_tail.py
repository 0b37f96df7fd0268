"""The events of a foreground response for readers that rejoin its stream: those of its log, followed by new ones."""

from collections.abc import AsyncGenerator, Sequence
from functools import partial

from stint.dataclasses import dataclass
from stint.domain.openai.response_events import ResponseEvent
from stint.domain.openai.stored_responses import ResponseRecord, StoredResponse
from stint.services.responses.recovery import Recovery
from stint.services.responses.response_replay import ResponseReplay
from stint.services.runs.partial_reader import PartialReader
from stint.services.runs.run_tail import RunTail
from stint.store.partial_keys import response_partials
from stint.store.store import Store

QUIET_SECONDS = 3.0
"""Seconds without a new record before the whole response is read, to see whether its process is dead."""

QUIET_GROWTH = 2
"""Each read of the whole response without a new record doubles the seconds: it may be large."""


@dataclass(frozen=True, slots=True)
class ForegroundTail:
    """Replays the events of a tenant's foreground responses, then tails new ones."""

    tenant: str
    store: Store
    recovery: Recovery

    async def read_events(
        self, stored: StoredResponse, after: int, deadline: float
    ) -> AsyncGenerator[ResponseEvent, None]:
        """Return the events after a number as `RunTail.follow`. Several readers may follow a response at once.

        Raises:
            NotFound: the response was deleted.
            InvalidRequest: the response has ended, and has no event with that number.
        """
        ids = self.tenant, stored.header.response_id
        stored = await self.recovery.reconcile(stored)
        await self.recovery.opaque.warm_for(stored.records)
        tailed = RunTail(
            ResponseReplay(stored.header, self.recovery.opaque.encode),
            PartialReader(self.store.partial_steps, response_partials(*ids)),
            partial(self.read_rest, ids[1]),
            partial(self.check_process, ids[1]),
            QUIET_SECONDS,
            QUIET_GROWTH,
        )
        beyond = (
            f"The stream of response {ids[1]} has {{}} events, numbered from 0. Event {after} does not exist. Set "
            "starting_after to the number of an existing event."
        )
        return await tailed.follow(stored, after, deadline, beyond)

    async def read_rest(self, response_id: str, start: int) -> Sequence[ResponseRecord]:
        """Read the records from an index on, and what is needed to show them. Raises NotFound."""
        records = await self.store.responses.read_rest(self.tenant, response_id, start)
        await self.recovery.opaque.warm_for(records)
        return records

    async def check_process(self, response_id: str) -> Sequence[ResponseRecord]:
        """Return the records of a quiet response, with an ending if its process died. Raises NotFound."""
        stored = await self.recovery.reconcile(await self.store.responses.get(self.tenant, response_id))
        await self.recovery.opaque.warm_for(stored.records)
        return stored.records
