"""Idempotency records of events. One worker at a time has an event's lease; a repeated event gets its outcome.

EventBridge and Lambda deliver an event at least once. Its record makes a repetition harmless: `began`, the id of the
turn or response, is stored with the lease, before anything is started. So a worker that takes over after a death knows
the id under which the run may exist, and looks there before it starts one.

    event               record                     acquire
    new                 none                       one write; the caller's `began` counts
    processed           lease is held              Conflict `event_running`
    interrupted         lease has lapsed, or was   takes over; the earlier `began` counts
                        released (end 0)
    done                `outcome`                  no write: the outcome, and a lease that is not held
    forgotten           `expires_at` has passed    as new, in place of the record that DynamoDB has not removed yet
"""

import time
from contextlib import suppress

from stint.dataclasses import dataclass
from stint.domain.errors import Conflict, Interrupted
from stint.store import keys
from stint.store.items import Item
from stint.store.lease import Attempt, Lease, Leases
from stint.store.table import NEW, Table

REMEMBERED_SECONDS = 7 * 86_400
"""Seconds for which an event is known, longer than EventBridge (a day) and Lambda (six hours) retry one."""

EXPIRED = "expires_at = :old_end"


@dataclass(frozen=True, slots=True)
class IdempotencyRecord:
    """The record of an event. `began` is the id of the turn or response that it started, or empty.

    With an `outcome`, a JSON text, the event is done, and the record has no lease.
    """

    lease: Lease
    began: str
    outcome: str | None = None

    async def renew(self, seconds: float) -> None:
        """Extend the lease. Raises Interrupted if it is lost."""
        await self.lease.renew(seconds)

    async def release(self) -> None:
        """Release the lease, so that another worker can take over at once; do nothing if it is lost."""
        await self.lease.release()

    async def put_began(self, began: str) -> None:
        """Store the id of the turn or response before the event starts it. Raises Interrupted if the lease is lost."""
        await self.lease.update({"began": began})

    async def put_outcome(self, outcome: str) -> None:
        """Store the outcome; do nothing if the lease is lost."""
        # Another worker has the event by now. It finds the same run by `began`, and stores the same outcome.
        with suppress(Interrupted):
            await self.lease.update({"outcome": outcome})


class IdempotencyRecords:
    """The events of a tenant's workers, with an expiring record for each."""

    def __init__(self, table: Table) -> None:
        self._table = table
        # A worker that is late must not take over an event that was done after it read the record.
        condition = "attribute_not_exists(outcome)"
        self._leases = Leases(
            table, "lock_id", "lock_until", condition, released={"lock_until": 0}, busy="event_running"
        )

    async def acquire(self, tenant: str, event_id: str, began: str, seconds: float) -> IdempotencyRecord:
        """Acquire the lease of an event: one write if it is new. An earlier `began` has priority.

        Raises:
            Conflict: `event_running` while another worker has the lease.
        """
        leases, key, now = self._leases, keys.event(tenant, event_id), int(time.time())
        resource, new = f"Event {event_id}", {"began": began, "expires_at": now + REMEMBERED_SECONDS}

        async def next_attempt(found: Item | None) -> Attempt | Lease:
            if found is None:
                return Attempt(NEW, new)
            if found["expires_at"] <= now:
                # By its end, which differs for each record: one of several workers replaces it.
                return Attempt(EXPIRED, new | {"outcome": None}, {":old_end": found["expires_at"]})
            if "outcome" in found:
                return Lease(leases, key, resource, "", item=found)
            if leases.is_held(found):
                raise Conflict(f"Event {event_id} is being processed.", code="event_running")
            return leases.attempt(found, {})

        lease = await leases.acquire(key, resource, seconds, Attempt(NEW, new), next_attempt)
        return IdempotencyRecord(lease, lease.item.get("began", ""), lease.item.get("outcome"))

    async def held_until(self, tenant: str, event_id: str) -> int | None:
        """Return the end of an event's lease, in ms; None if there is none."""
        item = await self._leases.read(keys.event(tenant, event_id)) or {}
        return item.get("lock_until")
