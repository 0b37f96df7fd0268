"""The spending of a run in a session or conversation with a budget, besides the budgets of its caller.

One run at a time has the session, so its ledger needs no write: it is in memory, and `stint.domain.session_budgets`
says when its totals are stored. The calls of the run may overlap, such as those of shields, so each reserves its part
of what is left, and both the session and the caller must allow it.
"""

from contextlib import suppress
from math import inf

from stint.dataclasses import dataclass
from stint.domain.errors import StintError
from stint.domain.session_budgets import MICRO, SessionLedger
from stint.metering import FindModel, Reservation, Spending, find_meter


def limit_run(ledger: SessionLedger | None) -> None:
    """Let the current run spend only what its session has left; nothing without a ledger.

    Raises QuotaExceeded if nothing is left.
    """
    if ledger is None:
        return
    ledger.require()
    meter = find_meter()
    if meter is None:  # a request that only stores a run for the worker
        return
    meter.spending = SessionSpending(ledger, meter.spending)
    ledger.money.other = lambda: meter.infrastructure_dollars * MICRO


async def require_price(find_model: FindModel) -> None:
    """Raise Forbidden if money is limited, and the model of the current run has no price."""
    meter = find_meter()
    if meter is None or meter.spending is None or not meter.spending.limits_money:
        return
    model_id = ""
    with suppress(StintError):  # the run itself will fail because of it
        model_id = await find_model()
    if model_id:
        meter.require_price(model_id)


class SessionSpending:
    """The budgets of a run in a session. `caller` has those of its caller, None if nothing limits it."""

    def __init__(self, ledger: SessionLedger, caller: Spending | None) -> None:
        self.ledger = ledger
        self.caller = caller

    @property
    def limits_money(self) -> bool:
        """Return whether the session or the caller has a limit of money."""
        return self.ledger.money.limit is not None or (self.caller is not None and self.caller.limits_money)

    async def admit(self, requests: int = 1, dollars: float = 0.0) -> None:
        """Admit a message that the run takes; see the protocol. Raises QuotaExceeded if nothing is left."""
        self.ledger.require()
        if self.caller is not None:
            await self.caller.admit(requests, dollars)

    async def admit_call(
        self, tokens: int, dollars: float, least_dollars: float, least_tokens: int, /
    ) -> "SessionReservation":
        """Reserve what a model call may spend, or what is left of it. Raises QuotaExceeded if that is not enough."""
        money, left = self.ledger.money, self.ledger.tokens
        self.ledger.require(least_dollars * MICRO, least_tokens)
        reserved = SessionReservation(
            self.ledger,
            microdollars=min(dollars * MICRO, money.left),
            tokens=min(tokens, left.left),
            session_dollars=money.left / MICRO,
            most_tokens=left.left,
        )
        # Before the caller's, which awaits: calls of the same run must see what the others have.
        money.opened += reserved.microdollars
        left.opened += reserved.tokens
        if self.caller is not None:
            try:
                reserved.caller = await self.caller.admit_call(tokens, dollars, least_dollars, least_tokens)
            except BaseException:
                reserved.close()
                raise
        return reserved

    async def close(self, dollars: float, *, started: bool) -> None:
        """Settle the budgets of the caller. Those of the session are written with its lease."""
        if self.caller is not None:
            await self.caller.close(dollars, started=started)

    def to_headers(self) -> dict[str, str]:
        """Return the headers with what is left of the caller's budgets."""
        return {} if self.caller is None else self.caller.to_headers()


@dataclass(slots=True)
class SessionReservation:
    """The reservation of one model call in a session, and that of its `caller`.

    `session_dollars` and `most_tokens` are what the session had left when the call began; inf if not limited.
    """

    ledger: SessionLedger
    microdollars: float
    tokens: float
    session_dollars: float
    most_tokens: float
    caller: Reservation | None = None

    @property
    def dollars(self) -> float:
        """Return the money that is reserved for the call."""
        return min(self.microdollars / MICRO, self.caller.dollars if self.caller else inf)

    @property
    def most_dollars(self) -> float:
        """Return the money that was left for the call when it began."""
        return min(self.session_dollars, self.caller.most_dollars if self.caller else inf)

    async def top_up(self, dollars: float) -> float:
        """Reserve more money, and return how much: less if less is left, 0 if nothing is."""
        found = min(dollars * MICRO, self.ledger.money.left)
        if found < 1:
            return 0.0
        self.ledger.money.opened += found
        self.microdollars += found
        if self.caller is None:
            return found / MICRO
        allowed = await self.caller.top_up(found / MICRO)
        return min(allowed, found / MICRO)

    async def settle(self, tokens: int, dollars: float, shown_dollars: float, /) -> None:
        """Replace the reservation by what the call has spent: in the session, what its readers may know."""
        self.close()
        self.ledger.money.run += shown_dollars * MICRO
        self.ledger.tokens.run += tokens
        if self.caller is not None:
            await self.caller.settle(tokens, dollars, shown_dollars)

    def close(self) -> None:
        """Return all that is reserved in the session."""
        self.ledger.money.opened -= self.microdollars
        self.ledger.tokens.opened -= self.tokens
