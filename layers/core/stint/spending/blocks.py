"""The blocks of budgets that a process has reserved, so that few requests write a counter.

A counter of the table is shared by all processes, and a write of it costs a unit and a round trip. So a process
reserves a 20th of a minute's limit at once, and its requests take from that block in memory:

    amount of a request             written to the counter
    all of it is free in the block  nothing
    some is missing                 one block, or what is missing if that is more
    the counter lacks a block       what is missing, without more, up to three times
    the counter lacks that, too     nothing more: the request is refused

A block lapses with its minute, together with what is free in it; the limit of the next minute is a new one. The answer
of each write, of a refused one too, has the counter, so a process learns what is left without reads, and refuses what
cannot succeed without a write.

Money has no blocks: it is reserved for a run. An amount that could not be returned or counted, because the table was
overloaded, is kept as `unsettled`, and written with the next amount of the same counter.
"""

import time
from collections import Counter
from collections.abc import Mapping
from math import ceil

from stint.dataclasses import dataclass, field
from stint.domain.errors import StintError, StoreUnavailable
from stint.spending.holders import (
    MICRODOLLARS,
    MINUTE,
    REQUESTS,
    TOKENS,
    BudgetHolder,
    attribute_of,
    end_of,
    month_of,
)
from stint.store.budgets import REPAID_AT, BudgetSpent, BudgetStore
from stint.store.items import Item
from stint.store.keys import Key

PARTS = 20
"""Parts of a minute's limit, one of which a process reserves at a time."""
ATTEMPTS = 4
"""Attempts to reserve. One fails if the counter has less left than this process knew."""
MOST_BLOCKS = 1_000
"""Counters of which a process remembers blocks, and those of which it remembers unsettled amounts."""

Need = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Money:
    """Microdollars to reserve: `wanted`, or what is left if that is less, but not less than `least`.

    `held` are those that the run has reserved before, for the same purpose.
    """

    wanted: int = 0
    least: int = 0
    held: int = 0


NO_MONEY = Money()


@dataclass(slots=True)
class ReservedBlock:
    """The reservation of a process. `free` is unused, `left` is left of the counter, and `seen` has its attributes.

    `left` is what the process knows since this minute began, `money_left` may be older. No tokens can be reserved
    before the second `repaid_at`.
    """

    minute: int
    free: dict[str, int] = field(default_factory=dict)
    left: dict[str, int] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)
    money_left: int | None = None
    repaid_at: int = 0

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

    def owes(self, name: str) -> bool:
        """Return whether nothing can be reserved, because earlier use above the limit is not repaid yet."""
        return name == TOKENS and self.repaid_at > time.time()

    def remaining(self, name: str, limit: int) -> int:
        """Return what callers of this process may still use, as far as it knows."""
        return (0 if self.owes(name) else self.left.get(name, limit)) + self.free.get(name, 0)

    def note(self, holder: BudgetHolder, counted: Item) -> None:
        """Record what is left of a counter."""
        for name, limit in holder.limits.items():
            self.left[name] = limit - int(counted.get(attribute_of(name, self.minute), 0))
        self.money_left = self.left.get(MICRODOLLARS)
        self.repaid_at = int(counted.get(REPAID_AT, 0))
        self.seen |= {name for name in counted if name.startswith((f"{REQUESTS}_", f"{TOKENS}_"))}


class ReservedBlocks:
    """The blocks of a tenant's holders in this process.

    `unsettled` has microdollars by counter, which it lacks, or has too many of if they are negative.
    """

    def __init__(self, store: BudgetStore) -> None:
        self._store = store
        self._blocks: dict[Key, ReservedBlock] = {}
        self.unsettled: Counter[Key] = Counter()

    def block_of(self, holder: BudgetHolder) -> ReservedBlock:
        """Return the block of the current minute. That of an earlier minute has lapsed."""
        key, minute = holder.key_of(month_of(time.time())), int(time.time() // MINUTE)
        block = self._blocks.get(key)
        if block is None or block.minute != minute:
            # Keys and subjects come and go. What is free in a block is lost with it, so callers use less, not more.
            if len(self._blocks) >= MOST_BLOCKS:
                self._blocks.clear()
            # The attributes of earlier minutes are removed by the next write, and the month's money goes on.
            last = block or ReservedBlock(minute)
            block = ReservedBlock(minute, seen=last.seen, money_left=last.money_left, repaid_at=last.repaid_at)
            self._blocks[key] = block
        return block

    async def reserve(self, holder: BudgetHolder, need: Need, money: Money = NO_MONEY) -> tuple[ReservedBlock, int]:
        """Reserve amounts and money, and return their block and the microdollars: one write, or none.

        Amounts without a limit are ignored. What is not used is put back into the block, which may have lapsed.

        Raises:
            RateLimitExceeded: the minute's limit is used up.
            QuotaExceeded: less of the month's money is left than the least.
        """
        limits, block = holder.limits, self.block_of(holder)
        # More than the limit could never be reserved, so it is cut: such a request takes a whole minute.
        needed = {name: min(amount, limits[name]) for name, amount in need.items() if name in limits and amount > 0}
        missing = block.take(needed)
        if not missing and money.wanted <= 0:
            return block, 0
        try:
            return block, await self._fetch(holder, block, missing, money)
        except BaseException:
            # Only what was taken from the block, because nothing was reserved.
            block.put_back({name: needed[name] - missing.get(name, 0) for name in needed})
            raise

    async def _fetch(self, holder: BudgetHolder, block: ReservedBlock, missing: dict[str, int], money: Money) -> int:
        """Reserve what is missing, with whole blocks if the counter has them, and return the microdollars."""
        parts = {name: max(amount, holder.limits[name] // PARTS) for name, amount in missing.items()}
        # A whole block is tried once. After that only what is missing, because other processes share what is left.
        for amounts in (parts, *[missing] * (ATTEMPTS - 1)):
            microdollars = self._allowed(holder, block, missing, money)
            try:
                await self._write(holder, block, amounts, microdollars)
            except BudgetSpent as spent:
                block.note(holder, spent.counted)
                continue
            block.put_back({name: amounts[name] - missing[name] for name in missing})
            return microdollars
        self._allowed(holder, block, missing, money)
        raise holder.refuse_rate(next(iter(missing))) if missing else holder.refuse_money(0, money.least)

    def _allowed(self, holder: BudgetHolder, block: ReservedBlock, missing: Need, money: Money) -> int:
        """Return the microdollars that can be reserved. Raises what the counter is known to lack."""
        for name, amount in missing.items():
            if block.owes(name) or block.left.get(name, amount) < amount:
                raise holder.refuse_rate(name, block.repaid_at)
        if money.wanted <= 0:
            return 0
        left = block.left.get(MICRODOLLARS, holder.limits[MICRODOLLARS])
        left -= self.unsettled[holder.key_of(month_of(block.minute * MINUTE))]
        if left < money.least:
            raise holder.refuse_money(left + money.held, money.least + money.held)
        return max(min(money.wanted, left), 0)

    async def _write(self, holder: BudgetHolder, block: ReservedBlock, amounts: Need, microdollars: int) -> None:
        limits = {attribute_of(name, block.minute): limit for name, limit in holder.limits.items()}
        current = set(limits)
        # Attributes of earlier minutes are removed by a write that happens anyway, so they cost no unit of their own.
        forgotten = sorted(block.seen - current)
        block.seen &= current
        month = month_of(block.minute * MINUTE)
        key, added = holder.key_of(month), {attribute_of(name, block.minute): n for name, n in amounts.items()}
        unsettled = self.unsettled.pop(key, 0)
        if microdollars + unsettled:
            added[MICRODOLLARS] = microdollars + unsettled
        if not added:
            return
        repaid_by = int(time.time()) if TOKENS in amounts else None
        try:
            counted = await self._store.reserve(
                key, added, limits, end_of(month), forgotten=forgotten, repaid_by=repaid_by
            )
        except (BudgetSpent, StintError) as error:
            self._keep(key, unsettled, error)
            raise
        block.note(holder, counted)

    async def spend_tokens(self, holder: BudgetHolder, tokens: int) -> None:
        """Count tokens that were spent without a reservation. Those above the limit are repaid by later minutes."""
        limit = holder.limits.get(TOKENS, 0)
        if tokens <= 0 or limit <= 0:
            return
        block, month = self.block_of(holder), month_of(time.time())
        key, attribute = holder.key_of(month), attribute_of(TOKENS, block.minute)
        # Without a condition: the tokens are spent, whatever the limit is.
        counted = await self._store.add(key, {attribute: tokens}, end_of(month))
        # Others' tokens above the limit are repaid by their own calls.
        above = min(int(counted[attribute]) - limit, tokens)
        if above > 0:
            seconds = ceil(above * MINUTE / limit)
            counted = await self._store.postpone(key, (block.minute + 1) * MINUTE, seconds, end_of(month))
        block.note(holder, counted)

    async def settle_money(self, holder: BudgetHolder, microdollars: int, month: str) -> None:
        """Count money that was spent without a reservation in a month, or return some of it, if it is negative.

        Money of a month is none of the next one. Raises StintError; the amount is then kept for the next write, unless
        the write may have taken effect and would return it twice.
        """
        key = holder.key_of(month)
        amount = microdollars + self.unsettled.pop(key, 0)
        if MICRODOLLARS not in holder.limits or not amount:
            return
        try:
            counted = await self._store.add(key, {MICRODOLLARS: amount}, end_of(month))
        except StintError as error:
            self._keep(key, amount, error)
            raise
        if month == month_of(time.time()):
            self.block_of(holder).note(holder, counted)

    def _keep(self, key: Key, amount: int, error: BudgetSpent | StintError) -> None:
        """Keep an amount that was not written for the next write. In doubt, callers spend less, not more."""
        if not amount or (amount < 0 and isinstance(error, StoreUnavailable) and error.unsure):
            return
        if len(self.unsettled) >= MOST_BLOCKS:
            self.unsettled.clear()
        self.unsettled[key] += amount
