"""The blocks of budgets that a process has reserved, so that few requests write a counter."""

import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from stint.dataclasses import dataclass, field
from stint.domain.errors import QuotaExceeded, RateLimitExceeded, StintError
from stint.domain.principals import Budgets
from stint.store.budgets import BudgetSpent, BudgetStore
from stint.store.items import Item
from stint.store.keys import Key

REQUESTS, TOKENS, MICRODOLLARS = "requests", "tokens", "microdollars"
MINUTE = 60
PARTS = 20
"""Parts of a minute's limit, one of which a process reserves at a time."""
KEPT_SECONDS = 3 * 86_400
"""Seconds after the end of a month until its counter expires."""
MOST_BLOCKS = 1_000
MICRO = 1_000_000

Need = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class BudgetHolder:
    """A key or a tenant with limits. `key_of` returns the key of its counter of a month."""

    name: str
    key_of: Callable[[str], Key]
    budgets: Budgets

    @property
    def limits(self) -> dict[str, int]:
        """Return the limits by what they limit."""
        dollars = self.budgets.dollars_per_month
        found = {
            REQUESTS: self.budgets.requests_per_minute,
            TOKENS: self.budgets.tokens_per_minute,
            MICRODOLLARS: None if dollars is None else max(round(dollars * MICRO), 1),
        }
        return {name: limit for name, limit in found.items() if limit is not None}


@dataclass(slots=True)
class ReservedBlock:
    """The reservation of a process. `free` is unused, `left` is left of the counter, and `seen` has its attributes."""

    minute: int
    free: dict[str, int] = field(default_factory=dict)
    left: dict[str, int] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)

    def take(self, need: Need) -> dict[str, int]:
        """Take what is free, and return what is missing."""
        missing = {}
        for name, amount in need.items():
            taken = min(self.free.get(name, 0), amount)
            self.free[name] = self.free.get(name, 0) - taken
            if taken < amount:
                missing[name] = amount - taken
        return missing

    def put_back(self, amounts: Need) -> None:
        for name, amount in amounts.items():
            self.free[name] = self.free.get(name, 0) + amount

    def remaining(self, name: str, limit: int) -> int:
        """Return what callers of this process may still use, as far as it knows."""
        return self.left.get(name, limit) + self.free.get(name, 0)


class ReservedBlocks:
    """The blocks of a tenant's holders in this process."""

    def __init__(self, store: BudgetStore) -> None:
        self._store = store
        self._blocks: dict[Key, ReservedBlock] = {}

    def block_of(self, holder: BudgetHolder) -> ReservedBlock:
        """Return the block of the current minute. That of an earlier minute has lapsed."""
        key, minute = holder.key_of(month_of(time.time())), int(time.time() // MINUTE)
        block = self._blocks.get(key)
        if block is None or block.minute != minute:
            if len(self._blocks) >= MOST_BLOCKS:
                self._blocks.clear()
            block = self._blocks[key] = ReservedBlock(minute, seen=block.seen if block else set())
        return block

    async def reserve(self, holder: BudgetHolder, need: Need) -> ReservedBlock:
        """Reserve amounts, and return their block: one write, or none if the block has them.

        Amounts without a limit are ignored. What is not used is put back into the block, which may have lapsed.

        Raises:
            RateLimitExceeded: the minute's limit is used up.
            QuotaExceeded: the month's money is spent.
        """
        limits, block = holder.limits, self.block_of(holder)
        needed = {name: min(amount, limits[name]) for name, amount in need.items() if name in limits and amount > 0}
        missing = block.take(needed)
        if not missing:
            return block
        try:
            await self._fetch(holder, block, missing)
        except BaseException:
            block.put_back({name: needed[name] - missing.get(name, 0) for name in needed})
            raise
        return block

    async def _fetch(self, holder: BudgetHolder, block: ReservedBlock, missing: dict[str, int]) -> None:
        limits = holder.limits
        parts = {name: limits[name] // PARTS if name != MICRODOLLARS else 0 for name in missing}
        wanted = {name: max(amount, parts[name]) for name, amount in missing.items()}
        for amounts in (wanted, missing):
            refuse_known(holder, block, missing)
            try:
                counted = await self._write(holder, block, amounts)
            except BudgetSpent as spent:
                note(holder, block, spent.counted)
                continue
            note(holder, block, counted)
            block.put_back({name: amounts[name] - missing[name] for name in missing})
            return
        refuse_known(holder, block, missing)
        raise refusal(holder, REQUESTS)

    async def _write(self, holder: BudgetHolder, block: ReservedBlock, amounts: dict[str, int]) -> Item:
        limits = {attribute_of(name, block.minute): limit for name, limit in holder.limits.items()}
        current = set(limits)
        forgotten = sorted(block.seen - current)
        block.seen &= current
        added = {attribute_of(name, block.minute): amount for name, amount in amounts.items()}
        month = month_of(block.minute * MINUTE)
        return await self._store.reserve(holder.key_of(month), added, limits, end_of(month), forgotten)

    async def spend(self, holder: BudgetHolder, name: str, amount: int) -> None:
        """Count what was spent without a reservation, whatever the limit is."""
        if name in holder.limits and amount > 0:
            block = self.block_of(holder)
            await self._add(holder, block, attribute_of(name, block.minute), amount, month_of(time.time()))

    async def return_money(self, holder: BudgetHolder, microdollars: int, month: str) -> None:
        """Return reserved money to the month in which it was reserved. It is no money of the next one."""
        if MICRODOLLARS in holder.limits and microdollars > 0:
            await self._add(holder, self.block_of(holder), MICRODOLLARS, -microdollars, month)

    async def _add(self, holder: BudgetHolder, block: ReservedBlock, attribute: str, amount: int, month: str) -> None:
        counted = await self._store.add(holder.key_of(month), {attribute: amount}, end_of(month))
        if month == month_of(time.time()):
            note(holder, block, counted)


def note(holder: BudgetHolder, block: ReservedBlock, counted: Item) -> None:
    """Record what is left of a counter."""
    for name, limit in holder.limits.items():
        block.left[name] = limit - int(counted.get(attribute_of(name, block.minute), 0))
    block.seen |= {name for name in counted if name.startswith((f"{REQUESTS}_", f"{TOKENS}_"))}


def refuse_known(holder: BudgetHolder, block: ReservedBlock, missing: Need) -> None:
    """Refuse what the counter is known to lack."""
    for name, amount in missing.items():
        if block.left.get(name, amount) < amount:
            raise refusal(holder, name)


def refusal(holder: BudgetHolder, name: str) -> StintError:
    """Return the error of a budget that is used up."""
    if name == MICRODOLLARS:
        return QuotaExceeded(
            f"{holder.name} has spent its {holder.budgets.dollars_per_month:g} dollars of this month. "
            "Ask the operator for a larger budget, or wait for the next month (UTC)."
        )
    seconds = seconds_left()
    return RateLimitExceeded(
        f"{holder.name} has used its {holder.limits[name]} {name} of this minute. Retry in {seconds} s.",
        retry_after=seconds,
    )


def attribute_of(name: str, minute: int) -> str:
    """Return the attribute of a counter: that of the month's money, or of a minute."""
    return name if name == MICRODOLLARS else f"{name}_{minute}"


def month_of(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m")


def end_of(month: str) -> int:
    """Return the time at which a month's counter expires."""
    start = datetime.strptime(f"{month}-01", "%Y-%m-%d").replace(tzinfo=UTC)
    return int(start.timestamp()) + 31 * 86_400 + KEPT_SECONDS


def seconds_left() -> int:
    """Return the seconds until the next minute, at least one."""
    return MINUTE - int(time.time() % MINUTE)
