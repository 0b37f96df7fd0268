"""The lease of a background response."""

import asyncio
from contextlib import suppress

from stint.domain.errors import StoreUnavailable
from stint.loop.lease_keeper import ENDING_SECONDS, LeaseKeeper
from stint.services.background.waiting import acquire_or_wait
from stint.store.response_leases import ResponseLease, ResponseLeases

ResponseKeeper = LeaseKeeper[ResponseLease]

WATCH_SECONDS = 1.0
"""Seconds between checks whether a run must stop."""


async def wait_for_stop(leases: ResponseLeases, lease: ResponseLease) -> None:
    """Return when a run must stop: the response was cancelled or deleted, or another worker runs it."""
    while True:
        await asyncio.sleep(WATCH_SECONDS)
        with suppress(StoreUnavailable):
            state = await leases.get_state(lease.tenant, lease.response_id)
            if state.cancelled_at is not None or state.lease_id != lease.lease_id:
                return


async def keep_response(
    leases: ResponseLeases, tenant: str, response_id: str, seconds: float, deadline: float
) -> ResponseKeeper | None:
    """Acquire the lease of a response; return None if another worker renews its own.

    A message may be redelivered before a dead worker's lease has lapsed, so this waits for the end of the lease.

    Raises:
        NotFound: the response was deleted.
        Conflict: it was cancelled, or acquired too often.
        Interrupted: there was no time to find out whether the other worker is alive.
    """
    clock = asyncio.get_running_loop().time

    async def acquire() -> tuple[ResponseLease, float]:
        asked = clock()
        span = min(seconds, deadline + ENDING_SECONDS - asked)
        return await leases.acquire(tenant, response_id, span), asked + span

    async def held_until() -> int | None:
        return (await leases.get_state(tenant, response_id)).lease_until

    pause = min(WATCH_SECONDS, seconds / 4)
    taken = await acquire_or_wait(acquire, held_until, "response_running", pause, deadline=deadline)
    return taken and LeaseKeeper(taken[0], seconds, deadline, taken[1])
