"""The budgets of a run: what its key and its tenant may spend."""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable
from math import ceil

from stint.dataclasses import dataclass
from stint.domain.errors import StintError
from stint.spending.blocks import (
    MICRO,
    MICRODOLLARS,
    MINUTE,
    PARTS,
    REQUESTS,
    TOKENS,
    BudgetHolder,
    ReservedBlock,
    ReservedBlocks,
    month_of,
    seconds_left,
)

logger = logging.getLogger(__name__)

CALL_TOKENS = 2_000
"""Most tokens that are reserved before the first model call is known."""
CALLS_AT_ONCE = 4
"""Parts of a minute's tokens, one of which the estimate of a model call does not exceed."""


class RunBudgets:
    """The budgets of one run, under each of its holders. `call_dollars` is the price of a model call of `CALL_TOKENS`.

    Money is reserved for the run, and settled when it ends. Tokens are settled with each model call.
    """

    def __init__(self, blocks: ReservedBlocks, holders: list[BudgetHolder], call_dollars: float) -> None:
        self.blocks = blocks
        self.holders = holders
        self.call_microdollars = max(to_microdollars(call_dollars), 1)
        self.reserved: Counter[str] = Counter()
        self.spent = 0.0
        self.open = 0
        self.admitted: list[ReservedBlock] = []

    async def admit(self, requests: int = 1) -> None:
        """Admit the run, and fetch blocks for its first model call. It may be repeated for a run of no request.

        Raises RateLimitExceeded or QuotaExceeded.
        """
        limits = self.limits_of(TOKENS)
        tokens = min([CALL_TOKENS, *(max(limit // PARTS, 1) for limit in limits)])
        self.admitted = await self.reserve({REQUESTS: requests, TOKENS: tokens}, self.call_microdollars)
        for block in self.admitted:
            block.put_back({TOKENS: tokens} if limits else {})

    def limits_of(self, name: str) -> list[int]:
        return [holder.limits[name] for holder in self.holders if name in holder.limits]

    async def reserve(self, need: dict[str, int], microdollars: int) -> list[ReservedBlock]:
        """Reserve amounts under all holders, concurrently. If one refuses, the others get theirs back."""
        tasks = [self.reserve_under(holder, need, microdollars) for holder in self.holders]
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        blocks = [outcome for outcome in outcomes if isinstance(outcome, ReservedBlock)]
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                for block in blocks:
                    block.put_back(need)
                raise outcome
        return blocks

    async def reserve_under(self, holder: BudgetHolder, need: dict[str, int], microdollars: int) -> ReservedBlock:
        """Reserve amounts, and the money that the run lacks for `microdollars` more than it has spent."""
        lacking = max(ceil(self.spent) + microdollars - self.reserved[holder.name], 0)
        lacking = min(lacking, holder.limits.get(MICRODOLLARS, 0))
        self.reserved[holder.name] += lacking
        try:
            return await self.blocks.reserve(holder, need | {MICRODOLLARS: lacking})
        except BaseException:
            self.reserved[holder.name] -= lacking
            raise

    async def admit_call(self, tokens: int, dollars: float) -> "CallReservation":
        """Reserve what a model call may spend. Raises as `admit`."""
        capped = min([tokens, *(max(limit // CALLS_AT_ONCE, 1) for limit in self.limits_of(TOKENS))])
        microdollars = to_microdollars(dollars)
        self.open += microdollars
        try:
            blocks = await self.reserve({TOKENS: capped}, self.open)
        except BaseException:
            self.open -= microdollars
            raise
        return CallReservation(self, blocks, capped, microdollars)

    async def settle_call(self, call: "CallReservation", tokens: int, dollars: float) -> None:
        """Replace the reservation of a model call by what it has spent."""
        self.open -= call.microdollars
        self.spent += dollars * MICRO
        unused = call.tokens - tokens
        for holder, block in zip(self.holders, call.blocks, strict=True):
            if unused >= 0:
                block.put_back({TOKENS: unused})
            elif TOKENS in holder.limits:
                missing = self.blocks.block_of(holder).take({TOKENS: -unused})
                await self.spend(holder, TOKENS, missing.get(TOKENS, 0))

    async def close(self, dollars: float, *, started: bool) -> None:
        """Settle the money of the run, which has spent `dollars` besides its model calls.

        A run that did not start is no request: a client that waits for a session repeats it.
        """
        for block in [] if started else self.admitted:
            block.put_back({REQUESTS: 1})
        spent = ceil(self.spent + dollars * MICRO) if self.admitted else 0
        month = month_of(self.admitted[0].minute * MINUTE if self.admitted else time.time())
        await asyncio.gather(*(self.settle_money(each, spent, month) for each in self.holders))

    async def settle_money(self, holder: BudgetHolder, spent: int, month: str) -> None:
        """Count what was spent beyond the reservation, or return the rest of it to the month of the run's start."""
        unused = self.reserved[holder.name] - spent
        if unused < 0:
            await self.spend(holder, MICRODOLLARS, -unused)
        else:
            await log_failure(self.blocks.return_money(holder, unused, month))

    async def spend(self, holder: BudgetHolder, name: str, amount: int) -> None:
        """Count what was spent."""
        await log_failure(self.blocks.spend(holder, name, amount))

    def to_headers(self) -> dict[str, str]:
        """Return OpenAI's headers of rate limits, for the holder who has the least left."""
        headers = {}
        for name in (REQUESTS, TOKENS):
            found = [
                (self.blocks.block_of(holder).remaining(name, holder.limits[name]), holder.limits[name])
                for holder in self.holders
                if name in holder.limits
            ]
            if found:
                remaining, limit = min(found)
                headers[f"x-ratelimit-limit-{name}"] = str(limit)
                headers[f"x-ratelimit-remaining-{name}"] = str(max(remaining, 0))
                headers[f"x-ratelimit-reset-{name}"] = f"{seconds_left()}s"
        return headers


@dataclass(frozen=True, slots=True)
class CallReservation:
    """The reservation of one model call."""

    budgets: RunBudgets
    blocks: list[ReservedBlock]
    tokens: int
    microdollars: int

    async def settle(self, tokens: int, dollars: float) -> None:
        """Replace the reservation by what the call has spent."""
        await self.budgets.settle_call(self, tokens, dollars)


async def log_failure(settling: Awaitable[None]) -> None:
    """Log the failure of a change of a counter. What was reserved counts instead."""
    try:
        await settling
    except StintError as error:
        logger.warning("A budget was not settled", extra={"error": error.message})


def to_microdollars(dollars: float) -> int:
    return ceil(dollars * MICRO)
