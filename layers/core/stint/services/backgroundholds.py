"""Holding a response that runs in the background."""

import asyncio
from contextlib import suppress

from stint.domain.errors import Conflict, Interrupted, StoreUnavailable
from stint.services.hold import Hold, lease_span
from stint.store.background import Background, BackgroundLease

WATCH_SECONDS = 1.0
"""How often a run looks whether it is to stop."""


class BackgroundHold(Hold):
    """The lease of a response, kept renewed. It is not given back: who has ended a response leaves nothing to hold."""

    def __init__(
        self, background: Background, lease: BackgroundLease, seconds: float, deadline: float, valid_until: float
    ) -> None:
        self.background = background
        self.lease = lease

        def prolong(span: float) -> None:
            background.renew(lease, span)

        super().__init__(prolong, lambda: None, seconds, deadline, valid_until)

    async def watch(self) -> None:
        """Return when the run is to stop: the response was cancelled or deleted, or another worker runs it."""
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            with suppress(StoreUnavailable):
                state = await asyncio.to_thread(self.background.look, self.lease.tenant, self.lease.response_id)
                if state.cancelled_at is not None or state.lease_id != self.lease.lease_id:
                    return

    async def let_lapse(self) -> None:
        """Let another worker take the response up at once."""
        self.stop()
        await asyncio.to_thread(self.background.renew, self.lease, 0)


async def take_up(
    background: Background, tenant: str, response_id: str, seconds: float, deadline: float
) -> BackgroundHold | None:
    """Take the lease of a response; None when another worker is seen to renew its own.

    A message may come again before the lease of a worker that died has run out: that is waited for.

    Raises:
        NotFound: the response was deleted.
        Conflict: it was cancelled, or taken up too often.
        Interrupted: there was no time to see whether the other worker lives.
    """
    clock = asyncio.get_running_loop().time
    pause, seen = min(WATCH_SECONDS, seconds / 4), None
    while True:
        asked, span = clock(), lease_span(seconds, deadline)
        try:
            lease = await asyncio.to_thread(background.enter, tenant, response_id, span)
            return BackgroundHold(background, lease, seconds, deadline, asked + span)
        except Conflict as conflict:
            if conflict.code != "response_running":
                raise
            busy = conflict.message
        state = await asyncio.to_thread(background.look, tenant, response_id)
        if seen is not None and state.lease_until != seen:
            return None
        seen = state.lease_until
        if clock() + pause >= deadline:
            raise Interrupted(busy)
        await asyncio.sleep(pause)
