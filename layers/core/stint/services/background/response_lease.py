"""Holding a response that runs in the background."""

import asyncio
from contextlib import suppress

from stint.domain.errors import StoreUnavailable
from stint.loop.lease_keeper import ENDING_SECONDS, Hold
from stint.services.background.waiting import take_from_the_dead
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

    def enter() -> tuple[BackgroundLease, float]:
        asked = clock()
        span = min(seconds, deadline + ENDING_SECONDS - asked)
        return background.enter(tenant, response_id, span), asked + span

    def held_until() -> int | None:
        return background.look(tenant, response_id).lease_until

    pause = min(WATCH_SECONDS, seconds / 4)
    taken = await take_from_the_dead(enter, held_until, "response_running", pause, deadline)
    return taken and BackgroundHold(background, taken[0], seconds, deadline, taken[1])
