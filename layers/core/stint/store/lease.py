"""Leases: the right of one holder to a record, until a time. A lease is in the record's own attributes.

A lease decides who may begin to write. It does not stop a holder that has lost it without knowing. The log of a turn or
a response does: each of its indexes is written once (see `stint.store.log`). So a lease that ends too early interrupts
a run, and loses nothing that was announced.

A lease is an id that is new for each acquisition, an end, and the lease time. Each change is one conditional write:

    state            attributes           acquire                       renew               release
    free             no id                one write                     Interrupted         nothing
    held, own        own id, end ahead    -                             new end             `released` is written
    held by another  other id, end ahead  refused                       Interrupted         nothing
    lapsed           id, end has passed   two writes, which take over   the holder's only   the holder's only
    ended, but not   as held              sessions: as lapsed;          as held             as held
    released                              others: as held
    marked deleted   `deleted_at`         refused                       Interrupted         as without the mark
    no record        -                    refused, or made              Interrupted         nothing

- `next_attempt`, which belongs to the kind of record, refuses: it raises Conflict or NotFound, or returns a lease that
  is not held. The records of events, requests and responses are made by their first acquisition.
- A lapsed lease stays its holder's until another request takes it over. Events and requests keep the id when they
  release a lease, and set its end to 0, so that a released lease is a lapsed one there.
- Conversations leave the id of a released lease in the place of its end (`names_last`). It tells the next holder that
  no other one was there in between, also none of an earlier release, which overwrites and removes it.
- Resume is the acquisition for a session's last turn. `stint.store.session_leases` has its conditions, and recognizes
  turns that have ended. The log has the seals: a request that takes over a lease seals the log of the holder's turn.

The end is one of the holder's wall clock. If that clock is ahead and the holder dies, its lease would be held for as
long as the clock was ahead. So a record also has the lease time, and readers count it by their own monotonic clocks
(`settle`): a holder that lives renews its lease within it, and one that could not has stopped writing by then. They
count from when they first see the lease, so a clock that differs never ends a lease that is renewed.

docs/decisions.md, entry 16, has the reasons.
"""

import logging
import math
import secrets
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress

from stint.dataclasses import dataclass, field
from stint.domain.errors import Conflict, Interrupted, StoreUnavailable
from stint.store.failures import ConditionFailed
from stint.store.items import Item
from stint.store.keys import Key
from stint.store.records import is_live
from stint.store.table import Table

logger = logging.getLogger(__name__)

ATTEMPTS = 5
"""Maximum writes of an acquisition. A free record takes one, a lapsed one two; others are lost to other requests."""

MOST_SEEN = 1_000
"""Maximum leases that a process remembers to have seen. The one that it has not seen for longest is forgotten."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """A write that acquires a lease if `condition` holds; `assign` is written with the lease.

    `taken_over` is the holder of the lapsed lease that the new one replaces.
    """

    condition: str
    assign: Item
    values: Item = field(default_factory=Item)
    taken_over: str | None = None


@dataclass(frozen=True, slots=True)
class Leases:
    """The leases of one kind of record. Each write costs the record's write units."""

    table: Table
    """The table that has the records."""
    id_name: str
    """The attribute with the id of the lease, 16 hexadecimal digits."""
    until_name: str
    """The attribute with the end of the lease, in milliseconds since 1970 by the holder's wall clock.

    See also `names_last`.
    """
    condition: str
    """What must hold for each acquisition, such as that the record is not deleted."""
    released: Item
    """What a release writes. None removes an attribute."""
    busy: str
    """The code of the Conflict if other requests win all attempts."""
    holder_name: str = ""
    """The attribute that names the holder for `taken_over`, such as its turn. Empty if nothing must be sealed."""
    names_last: bool = False
    """Whether a release leaves the lease's id in the attribute of its end, which each acquisition overwrites."""

    async def acquire(
        self, key: Key, resource: str, seconds: float, first: Attempt, next_attempt: "NextAttempt"
    ) -> "Lease":
        """Acquire the lease of a record: one write if the first attempt succeeds.

        `next_attempt` receives the record that an attempt found, None if there is none. It returns the next attempt, or
        a lease that is not held, or raises. `resource` is the record's name in messages.

        Raises:
            Conflict: other requests won all attempts.
            StoreUnavailable: the store failed. A lease whose answer was lost is released.
        """
        # A new id, not the name of the holder: one turn may acquire the same lease twice, and lose the first one.
        lease_id, attempt = secrets.token_hex(8), first
        for _ in range(ATTEMPTS):
            item, last = await self._try(key, lease_id, seconds, attempt)
            # Also after a refusal: the client repeats a write whose answer was lost, and then finds the lease's own id.
            if is_live(item) and item.get(self.id_name) == lease_id:
                return Lease(self, key, resource, lease_id, item=item, taken_over=attempt.taken_over, last=last)
            following = await next_attempt(await self.settle(item))
            if isinstance(following, Lease):
                return following
            attempt = following
        raise Conflict(f"{resource} is requested too often. Try again later.", code=self.busy)

    async def _try(self, key: Key, lease_id: str, seconds: float, attempt: Attempt) -> tuple[Item | None, str | None]:
        """Try to acquire a lease, and return the record as it then is, and the id of the last lease; see `Lease`."""
        # DynamoDB refuses a request with a value that its condition does not use.
        now = {":now": int(time.time())} if ":now" in attempt.condition else {}
        taken = {self.id_name: lease_id} | self.span_of(seconds) | attempt.assign
        condition, values = attempt.condition, attempt.values | now
        try:
            if not self.names_last:
                return await self.table.update(key, taken, condition, values), None
            before = await self.table.update(key, taken, condition, values, previous=True)
            item = {name: value for name, value in (before | taken).items() if value is not None}
            return item, str(before.get(self.until_name, "")) if self.id_name not in before else None
        except ConditionFailed as refused:
            return refused.item, None
        except StoreUnavailable as error:
            # No one knows of a lease whose answer was lost: it would keep the record locked until it lapses.
            if error.unsure:
                with suppress(StoreUnavailable):
                    await self.release(key, lease_id)
            raise

    async def release(self, key: Key, lease_id: str, assign: Item | None = None) -> None:
        """Release a lease and change other attributes; do nothing if the lease is lost."""
        final = (assign or {}) | self.released | ({self.until_name: lease_id} if self.names_last else {})
        with suppress(ConditionFailed):
            await self.table.update(key, final, f"{self.id_name} = :held", {":held": lease_id})

    def attempt(self, found: Item, assign: Item, also: str = "attribute_exists(pk)") -> Attempt:
        """Return the attempt to acquire the lease of a record without a holder; `also` must hold if it has none.

        A lapsed lease is taken over by one request.
        """
        if self.id_name not in found:
            return Attempt(f"{self.condition} AND attribute_not_exists({self.id_name}) AND {also}", assign)
        # The end as well as the id: a holder that renews its lease in the meantime keeps the id, and keeps the lease.
        condition = f"{self.condition} AND {self.id_name} = :old_id AND {self.until_name} = :old_until"
        seen = {":old_id": found[self.id_name], ":old_until": found[self.until_name]}
        return Attempt(condition, assign, seen, found.get(self.holder_name))

    def span_of(self, seconds: float) -> Item:
        """Return the attributes of a lease that starts now."""
        # Written together: `settle` counts the lease time that belongs to the end which it has seen.
        # Rounded up, because items have whole numbers: a reader must not count less than the lease time.
        return {self.until_name: end_of(seconds), seconds_name(self.until_name): math.ceil(seconds)}

    def is_held(self, found: Item) -> bool:
        """Return whether a record has a lease that has not lapsed."""
        return self.id_name in found and int(found[self.until_name]) > time.time() * 1000

    async def read(self, key: Key) -> Item | None:
        """Read a record; see `settle`."""
        return await self.settle(await self.table.get(key))

    async def settle(self, found: Item | None) -> Item | None:
        """Make the lease of a record lapse if its holder is dead; see `settle`."""
        return await settle(self.table, found, self.id_name, self.until_name)


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to a record. `item` is the record as it was when the lease was acquired.

    `taken_over` is the holder that let its lease lapse before: it may still write until it reads its clock. `last` is
    the id of the lease that was released last, if its kind names it; empty if none was, or by an earlier version; None
    if another one may have been held since. `noted` returns attributes that renewals and the release write, too.
    """

    kind: Leases
    key: Key
    resource: str
    lease_id: str
    item: Item
    taken_over: str | None = None
    last: str | None = None
    noted: Callable[[], Item] = dict

    async def renew(self, seconds: float) -> Item:
        """Extend the lease, and return the record. Raises Interrupted as `update`."""
        return await self.update(self.kind.span_of(seconds) | self.noted())

    async def update(self, assign: Item) -> Item:
        """Change attributes of the record, and return it. Raises Interrupted if the lease is lost."""
        # The id only: a lease that has lapsed, and that no one has taken over, is still its holder's.
        held = f"{self.kind.id_name} = :held AND attribute_not_exists(deleted_at)"
        try:
            return await self.kind.table.update(self.key, assign, held, {":held": self.lease_id})
        except ConditionFailed as refused:
            deleted = refused.item is None or "deleted_at" in refused.item
            reason = "deleted" if deleted else "taken over by another request"
            raise Interrupted(f"{self.resource} was {reason}.") from None

    async def release(self, assign: Item | None = None) -> None:
        """Release the lease and change other attributes; do nothing if the lease is lost."""
        await self.kind.release(self.key, self.lease_id, (assign or {}) | self.noted())


NextAttempt = Callable[[Item | None], Awaitable[Attempt | Lease]]


async def settle(table: Table, found: Item | None, id_name: str, until_name: str) -> Item | None:
    """Make the lease of a record lapse if this process has seen it unrenewed for a whole lease time.

    Return the record as it then is. Its holder's clock was ahead, and it is dead: one that renews its lease at the same
    time keeps it. This costs nothing but for such a lease, the units of one write.
    """
    if found is None or id_name not in found:
        return found
    key, until, seconds = Key(found["pk"], found["sk"]), int(found[until_name]), found.get(seconds_name(until_name))
    if not is_unrenewed(table, key, until, seconds):
        return found
    logger.warning("A lease was not renewed for its whole time, although its end is ahead: it lapses")
    # A holder that renews its lease at this moment wins: its end differs from the one that was seen.
    seen = {":old_id": found[id_name], ":old_until": until}
    try:
        return await table.update(
            key,
            {until_name: int(time.time()) * 1000},  # rounded down, so that it has passed at once
            f"{id_name} = :old_id AND {until_name} = :old_until",
            seen,
        )
    except ConditionFailed as refused:
        return refused.item


def is_unrenewed(table: Table, key: Key, until: int, seconds: float | None) -> bool:
    """Return whether this process has seen a held lease with the same end for `seconds`, its whole lease time.

    `key` is that of its record, and `until` is in milliseconds. Leases of earlier releases have no lease time.
    """
    now, seen = time.monotonic(), table.seen_leases
    known, since = seen.pop(key, (until, now))
    # A lease that has lapsed by the wall clock, too, needs no count. It is forgotten, because `pop` has removed it.
    if seconds is None or until <= time.time() * 1000:
        return False
    # A new end is a renewal, whatever the clocks show: the count starts again. The key moves to the end of the order.
    seen[key] = (until, since if known == until else now)
    # The first key is the one that was not seen for longest.
    if len(seen) > MOST_SEEN:
        del seen[next(iter(seen))]
    return now - seen[key][1] >= seconds


def seconds_name(until_name: str) -> str:
    """Return the name of the attribute with the lease time."""
    return until_name.removesuffix("until") + "seconds"


def end_of(seconds: float) -> int:
    """Return the end of a lease that starts now."""
    return round((time.time() + seconds) * 1000)
