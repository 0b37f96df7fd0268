"""The budgets of a run: what its key and its tenant may spend.

Tokens of a minute are estimated for each model call, and settled with it. Money is reserved for the run: when it is
admitted, for each model call, and while an answer is longer than what was reserved for it. The rest is returned when
the run ends. So the counters have at any time what all runs have spent, but for the last tokens of their open calls.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable
from math import ceil, inf

from stint.dataclasses import dataclass
from stint.domain.errors import InvalidRequest, QuotaExceeded, StintError
from stint.spending.blocks import PARTS, Money, ReservedBlock, ReservedBlocks
from stint.spending.holders import (
    MICRO,
    MICRODOLLARS,
    MINUTE,
    REQUESTS,
    TOKENS,
    BudgetHolder,
    month_of,
    seconds_left,
)

logger = logging.getLogger(__name__)

CALL_TOKENS = 2_000
"""Most tokens that are reserved before the first model call is known."""
CALLS_AT_ONCE = 4
"""Parts of a minute's tokens, one of which the estimate of a model call does not exceed."""


@dataclass(frozen=True, slots=True)
class Reserved:
    """Reserved amounts: a block of each holder, and microdollars that all of them have."""

    blocks: list[ReservedBlock]
    microdollars: int


class RunBudgets:
    """The budgets of one run, under each of its holders.

    `reserved` has the run's microdollars by holder, `spent_microdollars` what its ended calls have spent, and
    `open_microdollars` what its running calls may spend.
    """

    def __init__(self, blocks: ReservedBlocks, holders: list[BudgetHolder]) -> None:
        self.blocks = blocks
        self.holders = holders
        self.reserved: Counter[str] = Counter()
        self.spent_microdollars = 0.0
        self.open_microdollars = 0
        self.admitted: list[ReservedBlock] = []
        self.requests = 0

    @property
    def limits_money(self) -> bool:
        """Return whether a holder has a limit of money."""
        return bool(self.limits_of(MICRODOLLARS))

    async def admit(self, requests: int = 1, dollars: float = 0.0) -> None:
        """Admit the run, and fetch blocks for its first model call. It may be repeated for a run of no request.

        The first model call will probably cost so much. Without one, a millionth of a dollar is reserved, so that
        nothing runs once all money is spent.

        Raises:
            RateLimitExceeded, QuotaExceeded: a budget is used up.
            InvalidRequest: it counts as more requests than a minute has.
        """
        self.refuse_large_batch(requests)
        limits = self.limits_of(TOKENS)
        tokens = min([CALL_TOKENS, *(max(limit // PARTS, 1) for limit in limits)])
        money = Money(max(to_micro(dollars), 1), 1)
        reserved = await self.reserve({REQUESTS: requests, TOKENS: tokens}, money, ceil(self.spent_microdollars))
        self.admitted, self.requests = reserved.blocks, requests
        for block in self.admitted:
            block.put_back({TOKENS: tokens} if limits else {})

    def refuse_large_batch(self, requests: int) -> None:
        """Raise InvalidRequest if a request counts as more requests than a minute has, because it never fits."""
        for limit in self.limits_of(REQUESTS):
            if requests > max(limit, 1):
                raise InvalidRequest(
                    f"This request counts as {requests:,} requests, one for each file or document, and the limit is "
                    f"{limit:,} in a minute. Send at most {limit:,} at once.",
                    code="batch_too_large",
                )

    def limits_of(self, name: str) -> list[int]:
        return [holder.limits[name] for holder in self.holders if name in holder.limits]

    async def reserve(self, need: dict[str, int], money: Money, committed: int) -> Reserved:
        """Reserve amounts under all holders, concurrently, and money besides the `committed` microdollars of the run.

        If one holder refuses, the others get their amounts back.
        """
        tasks = [self.reserve_under(holder, need, money, committed) for holder in self.holders]
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        found = [outcome for outcome in outcomes if not isinstance(outcome, BaseException)]
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                for each in found:
                    each.blocks[0].put_back(need)
                raise outcome
        return Reserved([each.blocks[0] for each in found], min(each.microdollars for each in found))

    async def reserve_under(self, holder: BudgetHolder, need: dict[str, int], money: Money, committed: int) -> Reserved:
        """Reserve amounts, and the money that the run lacks."""
        if MICRODOLLARS not in holder.limits:
            block, _ = await self.blocks.reserve(holder, need)
            return Reserved([block], money.wanted)
        lacking = committed - self.reserved[holder.name]
        wanted, least = max(lacking + money.wanted, 0), max(lacking + money.least, 0)
        # Before the write, since calls of the same run reserve concurrently, and each must see what the others have.
        self.reserved[holder.name] += wanted
        try:
            block, found = await self.blocks.reserve(holder, need, Money(wanted, least, max(-lacking, 0)))
        except BaseException:
            self.reserved[holder.name] -= wanted
            raise
        self.reserved[holder.name] -= wanted - found
        return Reserved([block], money.wanted - (wanted - found))

    async def admit_call(
        self, tokens: int, dollars: float, least_dollars: float, _least_tokens: int = 0, /
    ) -> "CallReservation":
        """Reserve what a model call may spend. If less money is left, that is reserved, but not less than the least.

        The tokens of a minute need no least amount, because later minutes repay what is above their limit. Raises as
        `admit`.
        """
        # With a larger estimate, one call could take the whole minute, and no other one would begin.
        capped = min([tokens, *(max(limit // CALLS_AT_ONCE, 1) for limit in self.limits_of(TOKENS))])
        reserved = await self.reserve_open({TOKENS: capped}, to_micro(dollars), to_micro(least_dollars))
        most = self.money_left() + reserved.microdollars
        return CallReservation(self, reserved.blocks, capped, reserved.microdollars, most_dollars=most / MICRO)

    async def reserve_open(self, need: dict[str, int], wanted: int, least: int) -> Reserved:
        """Reserve amounts and money for a running call. Raises as `admit`."""
        committed = ceil(self.spent_microdollars) + self.open_microdollars
        self.open_microdollars += wanted
        try:
            reserved = await self.reserve(need, Money(wanted, least), committed)
        except BaseException:
            self.open_microdollars -= wanted
            raise
        self.open_microdollars -= wanted - reserved.microdollars
        return reserved

    def money_left(self) -> float:
        """Return the microdollars that are left for further calls of the run, as far as this process knows."""
        limited = [holder for holder in self.holders if MICRODOLLARS in holder.limits]
        left = [
            inf if (found := self.blocks.block_of(holder).money_left) is None else found + self.reserved[holder.name]
            for holder in limited
        ]
        return max(min(left, default=inf) - ceil(self.spent_microdollars) - self.open_microdollars, 0)

    async def settle_call(self, call: "CallReservation", tokens: int, dollars: float) -> None:
        """Replace the reservation of a model call by what it has spent."""
        self.open_microdollars -= call.microdollars
        self.spent_microdollars += dollars * MICRO
        unused = call.tokens - tokens
        for holder, block in zip(self.holders, call.blocks, strict=True):
            if unused >= 0:
                block.put_back({TOKENS: unused})
            elif TOKENS in holder.limits:
                # From the block of the current minute: that of the reservation may have lapsed.
                missing = self.blocks.block_of(holder).take({TOKENS: -unused})
                await log_failure(self.blocks.spend_tokens(holder, missing.get(TOKENS, 0)))

    async def close(self, dollars: float, *, started: bool) -> None:
        """Settle the money of the run, which has spent `dollars` besides its model calls, in the month of its start.

        A run that did not start is no request: a client that waits for a session repeats it.
        """
        for block in [] if started else self.admitted:
            block.put_back({REQUESTS: self.requests})
        spent = ceil(self.spent_microdollars + dollars * MICRO) if self.admitted else 0
        # A run that crosses the end of a month returns the money to the month that it was reserved from.
        month = month_of(self.admitted[0].minute * MINUTE if self.admitted else time.time())
        settled = (
            log_failure(self.blocks.settle_money(holder, spent - self.reserved[holder.name], month))
            for holder in self.holders
        )
        await asyncio.gather(*settled)

    def to_headers(self) -> dict[str, str]:
        """Return OpenAI's headers of rate limits, for the holder who has the least left."""
        headers = {}
        for name in (REQUESTS, TOKENS):
            blocks = [(self.blocks.block_of(each), each.limits[name]) for each in self.holders if name in each.limits]
            if blocks:
                remaining, limit, reset = min(
                    (block.remaining(name, limit), limit, seconds_left(block.repaid_at if name == TOKENS else 0))
                    for block, limit in blocks
                )
                headers[f"x-ratelimit-limit-{name}"] = str(limit)
                headers[f"x-ratelimit-remaining-{name}"] = str(max(remaining, 0))
                headers[f"x-ratelimit-reset-{name}"] = f"{reset}s"
        return headers


@dataclass(slots=True)
class CallReservation:
    """The reservation of one model call. `most_dollars` is what was left for it when it began; inf if not limited."""

    budgets: RunBudgets
    blocks: list[ReservedBlock]
    tokens: int
    """Tokens that were reserved, at most a quarter of a minute's limit."""
    microdollars: int
    """Microdollars that were reserved."""
    most_dollars: float
    most_tokens: float = inf
    """The tokens of a minute end no answer."""

    @property
    def dollars(self) -> float:
        """Return the money that is reserved for the call."""
        return self.microdollars / MICRO

    async def top_up(self, dollars: float) -> float:
        """Reserve more money, and return how much: less if less is left, 0 if nothing is."""
        try:
            reserved = await self.budgets.reserve_open({}, to_micro(dollars), 1)
        except QuotaExceeded:
            return 0.0
        self.microdollars += reserved.microdollars
        return reserved.microdollars / MICRO

    async def settle(self, tokens: int, dollars: float, _shown_dollars: float = 0.0, /) -> None:
        """Replace the reservation by what the call has spent."""
        await self.budgets.settle_call(self, tokens, dollars)


async def log_failure(settling: Awaitable[None]) -> None:
    """Log the failure of a change of a counter. Money is counted by a later write, tokens are not."""
    try:
        await settling
    except StintError as error:
        logger.warning("A budget was not settled", extra={"error": error.message})


def to_micro(dollars: float) -> int:
    return ceil(dollars * MICRO)
