"""The capacity of a table: what each partition key and the whole table may consume in a second.

The limits are DynamoDB's, and writes and reads share them: half of the writes leave half of the reads.

    a partition    1,000 write units or 3,000 read units a second. A partition key never has more: adaptive capacity
                   gives a hot key a partition of its own, and can split it between its sort keys, but not an item
    a new table    4,000 write units or 12,000 read units a second on demand, and twice its last peak afterwards

DynamoDB may add what a partition has not used in the last 300 seconds. That is not promised, so it is not added here: a
key saves the units of one second, and no more. Keys share no partition here, which is DynamoDB's best case.

A request is admitted as long as its keys and the table have something left, and is charged what it has consumed. The
next one waits until that is paid.
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/burst-adaptive-capacity.html
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/on-demand-capacity-mode.html
"""

import math
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Literal

Direction = Literal["write", "read"]


@dataclass(frozen=True)
class Limit:
    """Units per second: so many writes, or so many reads."""

    writes: float
    reads: float

    def share(self, direction: Direction, units: float) -> float:
        """Return the part of a second's capacity that units take."""
        return units / (self.writes if direction == "write" else self.reads)


OF_A_KEY = Limit(1_000, 3_000)
OF_A_NEW_TABLE = Limit(4_000, 12_000)
OF_A_TABLE = Limit(40_000, 40_000)
"""The default quota of a table on demand."""
UNLIMITED = Limit(math.inf, math.inf)
ROUNDING = 1e-9
"""The largest difference of a sum of parts from the whole."""


@dataclass(slots=True)
class Consumption:
    """The units of one direction. `peak` is the most of a second of the clock."""

    total: float = 0
    peak: float = 0
    second: int = -1
    in_second: float = 0

    def add(self, units: float, now: float) -> None:
        self.total += units
        if self.second != int(now):
            self.second, self.in_second = int(now), 0
        self.in_second += units
        self.peak = max(self.peak, self.in_second)


@dataclass(slots=True)
class Bucket:
    """The units that a key or a table has consumed and has left: at most those of a second."""

    limit: Limit
    refilled_at: float
    left: float = 1.0
    writes: Consumption = field(default_factory=Consumption)
    reads: Consumption = field(default_factory=Consumption)
    used: Consumption = field(default_factory=Consumption)
    """Both, as parts of a second's capacity."""
    refused: int = 0

    def has_left(self, now: float) -> bool:
        self.left = min(1.0, self.left + now - self.refilled_at)
        self.refilled_at = now
        return self.left > ROUNDING

    def charge(self, direction: Direction, units: float, now: float) -> None:
        share = self.limit.share(direction, units)
        self.left -= share
        self.used.add(share, now)
        (self.writes if direction == "write" else self.reads).add(units, now)


class Capacity:
    """The buckets of the table, and of each partition key."""

    def __init__(self, key: Limit = UNLIMITED, table: Limit = UNLIMITED) -> None:
        self._key_limit, self._table_limit = key, table
        self._table: Bucket | None = None
        self.keys: dict[str, Bucket] = {}

    def table(self, now: float) -> Bucket:
        if self._table is None:
            self._table = Bucket(self._table_limit, now)
        return self._table

    def key(self, pk: str, now: float) -> Bucket:
        return self.keys.get(pk) or self.keys.setdefault(pk, Bucket(self._key_limit, now))

    def admits(self, pks: Collection[str], now: float) -> bool:
        """Return whether a request may begin. A refusal is counted where nothing is left."""
        buckets = [self.table(now), *(self.key(pk, now) for pk in pks)]
        exhausted = [bucket for bucket in buckets if not bucket.has_left(now)]
        for bucket in exhausted:
            bucket.refused += 1
        return not exhausted

    def charge(self, pk: str, direction: Direction, units: float, now: float) -> None:
        self.table(now).charge(direction, units, now)
        self.key(pk, now).charge(direction, units, now)


def write_units(size: int) -> int:
    """Return the units of a write of a record, 1 KB each."""
    return max(1, math.ceil(size / 1_024))


def read_units(size: int, *, consistent: bool) -> float:
    """Return the units of a read, 4 KB each; half of them if it is eventually consistent."""
    return max(1, math.ceil(size / 4_096)) * (1 if consistent else 0.5)
