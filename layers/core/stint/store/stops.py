"""Stops of tenants: a record that every change writes, and its copies, which processes read.

    record      key               written by                                read by
    original    `T#stop`          each change, of every release             admins; processes, to check a copy
    copy        `T#stop:{copy}`   each change, all in one transaction with  processes, at the start of a run and once a
                                  the original                              second while they have runs: one at random

The value of a stop is its time, in seconds of the epoch. `stops` counts the attributes that are stops, because the
condition of an older release compares it with MAX_STOPS.

Older releases, also as a command on another machine, change the original alone. So a process compares a copy with the
original when it first reads a tenant's stops, and then about once a minute. While they differ, it follows the original,
which it reads each time. The next change makes all equal. With the key layout `compatible`, processes read the original
alone, because functions of an older release may still write it.
"""

import asyncio
import logging
import random
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING

from stint.aws.errors import DynamoDBError
from stint.aws.retries import is_throttled
from stint.domain.errors import Conflict, StoreUnavailable
from stint.domain.stops import MAX_STOPS, WHOLE_TENANT
from stint.store import keys
from stint.store.items import Item, decode, encode
from stint.store.keys import STOP_COPIES, Key, KeyLayout
from stint.store.parallel import map_concurrently
from stint.store.table import GET_BATCH, NEW, OVERLOADED, call_counted

if TYPE_CHECKING:
    from stint.aws.dynamodb import DynamoDBClient
    from stint.store.transactions import Put

logger = logging.getLogger(__name__)

OTHERS = frozenset({"pk", "sk", "stops"})
"""The attributes that are not stops."""

CHECK_SECONDS = 60.0
"""Longest time between two comparisons with the original: until a stop that an older command has set has an effect."""

SETTLING_SECONDS = 10.0
"""Time after which a difference is no change that is under way. Eventually consistent reads take about a second."""

READ_PAUSE_SECONDS, CHANGE_PAUSE_SECONDS = 0.02, 0.1
"""Longest pause before another attempt, doubled for each further one."""

LONGEST_PAUSE_SECONDS = 1.0
"""The longest of these pauses."""

CHANGES = 30
"""Maximum attempts of a change that others overtake."""

MOST_TENANTS = 1_000
"""Tenants of which a process remembers how their copies were."""

TOO_MANY = "The tenant has {} stops, which is the maximum. Lift one of them, or stop the whole tenant."
CONTENDED = "Too many requests change the stops of the tenant. Try again."
DIFFERENT = (
    "The stops of a tenant were changed by an older release. They hold, but each read of them also reads the record "
    "that all processes share. Set a stop again with this release, or lift one: that makes all records equal"
)


class CopyCheck:
    """The state of a tenant's copies as a process saw it: when they were equal to the original, or since when not."""

    def __init__(self) -> None:
        self.needed = True
        """Whether a copy alone does not tell the stops."""
        self._equal_at = self._different_at = self._patience = 0.0
        self._warned = False

    @property
    def due(self) -> bool:
        """Return whether the original is to be read beside the copy."""
        # By the wall clock: that of a frozen process goes on. If it was set back, the check is due.
        return self.needed or not 0 <= time.time() - self._equal_at < self._patience

    def compare(self, tenant: str, copy: Mapping[str, int], original: Mapping[str, int]) -> None:
        """Note whether a copy is equal to the original."""
        now = time.time()
        self.needed = copy != original
        if not self.needed:
            # Random: processes that have started together do not check together.
            self._patience = random.uniform(0.5, 1) * CHECK_SECONDS  # noqa: S311 - spreads the load
            self._equal_at, self._different_at, self._warned = now, 0.0, False
            return
        self._different_at = self._different_at or now
        if now - self._different_at >= SETTLING_SECONDS and not self._warned:
            self._warned = True
            logger.warning(DIFFERENT, extra={"stopped_tenant": tenant})


class StopStore:
    """The stops of all tenants. A process needs one, because it remembers how the copies were.

    Eventually consistent reads are enough: each is repeated within seconds. A read costs half a unit per record, and a
    change two write units for each KB of each of the nine records.
    """

    def __init__(self, client: "DynamoDBClient", table: str, key_layout: KeyLayout = "spread") -> None:
        self._client = client
        self._table_name = table
        self._spread = key_layout == "spread"
        self._check: Callable[[str], CopyCheck] = lru_cache(MOST_TENANTS)(lambda _: CopyCheck())

    async def read_original(self, tenant: str) -> Mapping[str, int]:
        """Read the stops of a tenant as the last change has left them: one read unit."""
        return stops_of(await self._get(keys.stops(tenant), consistent=True))

    async def read(self, tenant: str) -> Mapping[str, int]:
        """Read the stops of a tenant. If a copy is throttled, another one is read. Raises StoreUnavailable."""
        if not self._spread:
            return stops_of(await self._get(keys.stops(tenant)))
        check, original, found = self._check(tenant), keys.stops(tenant), dict[Key, Item]()
        wanted = [original] if check.due else []
        number = int(random.random() * STOP_COPIES)  # noqa: S311 - spreads the load
        for attempt in range(STOP_COPIES):
            # The second attempt reads another partition at once.
            if attempt > 1:
                await _pause(attempt - 1, READ_PAUSE_SECONDS)
            copy = keys.stop_copy(tenant, number)
            found |= await self._read_unthrottled([key for key in (copy, *wanted) if key not in found])
            stops = _conclude(tenant, check, found.get(copy), found.get(original))
            if stops is not None:
                return stops
            if copy not in found:
                number = (number + 1) % STOP_COPIES
            wanted = [original] if check.needed else []
        raise StoreUnavailable(OVERLOADED)

    async def read_with(self, tenant: str, others: Sequence[Key]) -> tuple[Mapping[str, int], Mapping[Key, Item]]:
        """Read the stops of a tenant and other records, up to GET_BATCH per call: half a read unit for each of 4 KB.

        Missing records are omitted. Raises StoreUnavailable if a part was not read. Nothing is repeated: the caller
        reads again in a second, and then another copy.
        """
        check, original = self._check(tenant), keys.stops(tenant)
        copies = [keys.stop_copy(tenant, random.randrange(STOP_COPIES))] if self._spread else []  # noqa: S311 - as above
        wanted = [*copies, *([original] if check.due else []), *others]
        parts = [wanted[at : at + GET_BATCH] for at in range(0, len(wanted), GET_BATCH)]
        found = {key: item for part in await map_concurrently(self._get_part, parts) for key, item in part.items()}
        copy = found.get(copies[0]) if copies else None
        stops = _conclude(tenant, check, copy, found.get(original))
        if stops is None or any(key not in found for key in others):
            raise StoreUnavailable(OVERLOADED)
        return stops, {key: found[key] for key in others if found[key]}

    async def add(self, tenant: str, name: str, now: int) -> int:
        """Add a stop, and return its time, which is earlier if it exists. Raises Conflict if there are too many."""

        def change(stops: Mapping[str, int]) -> Mapping[str, int]:
            # A stop that is there was added before, perhaps by this very call, whose answer was lost. The whole tenant
            # can always be stopped.
            if name not in stops and name != WHOLE_TENANT and len(stops) >= MAX_STOPS:
                raise Conflict(TOO_MANY.format(len(stops)), code="too_many_stops")
            return {name: now} | dict(stops)

        _, stops = await self._change(tenant, change)
        return stops[name]

    async def remove(self, tenant: str, name: str) -> int | None:
        """Remove a stop, and return its time; None if there is none."""
        before, _ = await self._change(tenant, lambda stops: {each: at for each, at in stops.items() if each != name})
        return before.get(name)

    async def _change(
        self, tenant: str, change: Callable[[Mapping[str, int]], Mapping[str, int]]
    ) -> tuple[Mapping[str, int], Mapping[str, int]]:
        """Write the changed stops to all records, and return those before and after it.

        All are written also if nothing changes, because an older release may have written the original alone.
        """
        from stint.store.transactions import TransactionCancelled, Transactions  # noqa: PLC0415 - admins change stops

        transactions = Transactions(self._client, self._table_name)
        for attempt in range(CHANGES):
            await _pause(attempt, CHANGE_PAUSE_SECONDS)
            # Read again each time: what the condition of the last attempt has found is old after the pause.
            found = await self._get(keys.stops(tenant), consistent=True)
            before = stops_of(found)
            after = change(before)
            with suppress(TransactionCancelled):
                if await transactions.try_to_write(_puts(tenant, found, after)):
                    return before, after
        raise StoreUnavailable(CONTENDED)

    async def _get(self, key: Key, *, consistent: bool = False) -> Item:
        """Read a record; it is empty if there is none."""
        request = {"TableName": self._table_name, "Key": encode(key._asdict()), "ConsistentRead": consistent}
        answer = await call_counted(self._client, "GetItem", request, repeat_throttled=consistent or not self._spread)
        return decode(answer["Item"]) if "Item" in answer else {}

    async def _get_part(self, wanted: Sequence[Key]) -> dict[Key, Item]:
        """Read records, without those that were throttled. A missing one is empty."""
        request = {"RequestItems": {self._table_name: {"Keys": [encode(key._asdict()) for key in wanted]}}}
        answer = await call_counted(self._client, "BatchGetItem", request, repeat_throttled=not self._spread)
        left = answer.get("UnprocessedKeys", {}).get(self._table_name, {}).get("Keys", [])
        throttled = {Key(**decode(key)) for key in left}
        items = map(decode, answer["Responses"].get(self._table_name, []))
        found = {Key(item["pk"], item["sk"]): item for item in items}
        return {key: found.get(key, {}) for key in wanted if key not in throttled}

    async def _read_unthrottled(self, wanted: Sequence[Key]) -> dict[Key, Item]:
        """Read one or two records, without those that were throttled. A missing one is empty."""
        try:
            return await self._get_part(wanted) if len(wanted) > 1 else {wanted[0]: await self._get(wanted[0])}
        except StoreUnavailable as error:
            cause = error.__cause__
            if isinstance(cause, DynamoDBError) and is_throttled(cause.code, cause.status):
                return {}
            raise


def stops_of(item: Item) -> Mapping[str, int]:
    return {name: int(value) for name, value in item.items() if name not in OTHERS}


def _conclude(tenant: str, check: CopyCheck, copy: Item | None, original: Item | None) -> Mapping[str, int] | None:
    """Return the stops according to what was read of the records; None if that does not tell."""
    if original is None:
        return None if copy is None or check.needed else stops_of(copy)
    stops = stops_of(original)
    if copy is not None:
        check.compare(tenant, stops_of(copy), stops)
    return stops


def _puts(tenant: str, found: Item, stops: Mapping[str, int]) -> list["Put"]:
    """Return the writes of all records, on the condition that the original is as it was found."""
    from stint.store.transactions import Put  # noqa: PLC0415 - as above

    attributes = {**stops, "stops": len(stops)}
    # All attributes: `stops` alone would miss that one stop was lifted and another one set.
    names = {f"#{number}": name for number, name in enumerate(sorted(found.keys() - {"pk", "sk"}))}
    condition = " AND ".join(f"{short} = :{short[1:]}" for short in names) or NEW
    values = {f":{short[1:]}": found[name] for short, name in names.items()}
    copies = [keys.stop_copy(tenant, number)._asdict() | attributes for number in range(STOP_COPIES)]
    original = keys.stops(tenant)._asdict() | attributes
    return [
        Put(original, condition=condition, values=values, names=names),
        *(Put(copy, condition="") for copy in copies),
    ]


async def _pause(failed: int, seconds: float) -> None:
    """Wait after a number of failed attempts, longer after each: at most `seconds` after the first one."""
    if failed > 0:
        longest = min(seconds * 2 ** (failed - 1), LONGEST_PAUSE_SECONDS)
        await asyncio.sleep(random.uniform(0, longest))  # noqa: S311 - spreads the load
