"""The budget of one session or conversation: what it may spend as a whole, and what it has spent.

One run at a time has a session, so its counter needs no write of its own: it is in the session's record, which a run
reads as it acquires the lease, and writes as it renews or releases it. In between, the run's ledger is the truth, and
each record of its log has the total (`spent`). A total only grows, so the larger one of two is the newer one, and a
call that is counted once is not counted again:

    the process dies after            the next holder of the session finds
    the acquisition                   the total of the run before
    a record of the log               that record's total, which it takes over before anything else
    the release                       the total in the session's record

What a dead process spent after its last record is lost: at most one model call. A run is refused when nothing is left,
a model call when less is left than its input needs, and an answer ends when what is left is spent. A fork is another
session: it has the limits of its source, and has spent nothing.

docs/decisions.md, entry 154, has the reasons.
"""

from collections.abc import Callable
from math import ceil, inf
from typing import Annotated, Self

from pydantic import Field, model_validator

from stint.dataclasses import dataclass
from stint.domain.errors import QuotaExceeded
from stint.domain.fields import Omitted, missing
from stint.domain.principals import MOST_DOLLARS, MOST_PER_MINUTE, format_limit
from stint.domain.schema import Request, Schema

MICRO = 1_000_000
"""Microdollars of a dollar."""
UNLIMITED = "-"
"""What a record has in place of a limit."""


class SessionBudget(Request):
    """Limits of what a session or conversation spends as a whole, at least one: US dollars, and tokens each way."""

    max_dollars: Omitted[Annotated[float, Field(strict=True, gt=0, le=MOST_DOLLARS, allow_inf_nan=False)]] = None
    max_tokens: Omitted[Annotated[int, Field(strict=True, ge=1, le=MOST_PER_MINUTE)]] = None

    @model_validator(mode="after")
    def require_limit(self) -> Self:
        if self.max_dollars is None and self.max_tokens is None:
            raise missing("max_dollars", "a budget has max_dollars, max_tokens, or both")
        return self

    def pack(self) -> str:
        """Return the limits as a session's record has them."""
        dollars = None if self.max_dollars is None else max(round(self.max_dollars * MICRO), 1)
        return " ".join(UNLIMITED if limit is None else str(limit) for limit in (dollars, self.max_tokens))

    def show(self) -> "SpentBudget":
        """Return the budget of a new session or conversation, as the API shows it."""
        return SessionLedger.read("", self.pack(), None).show()


class SpentBudget(Schema):
    """The budget of a session or conversation, what it has spent of it, and what is left.

    While a run runs, it is that of the last renewal of its lease. The last call of a run may spend more than is left.
    """

    max_dollars: Omitted[float] = None
    spent_dollars: Omitted[float] = None
    remaining_dollars: Omitted[float] = None
    max_tokens: Omitted[int] = None
    spent_tokens: Omitted[int] = None
    remaining_tokens: Omitted[int] = None

    @property
    def limits(self) -> SessionBudget:
        return SessionBudget(max_dollars=self.max_dollars, max_tokens=self.max_tokens)


def nothing() -> float:
    return 0.0


@dataclass(slots=True)
class LedgerPart:
    """The money or the tokens of a ledger, in microdollars or tokens.

    `earlier` was spent before the run, `run` by its calls that have ended, and `opened` is reserved for open calls.
    `other` returns what the run has spent besides.
    """

    limit: int | None
    earlier: int = 0
    run: float = 0.0
    opened: float = 0.0
    other: Callable[[], float] = nothing

    @property
    def total(self) -> int:
        """Return what the session has spent, with what the run has spent so far."""
        return self.earlier + ceil(self.run + self.other())

    @property
    def left(self) -> float:
        """Return what is left for further calls; inf without a limit."""
        return inf if self.limit is None else max(self.limit - self.total - self.opened, 0)


@dataclass(slots=True)
class SessionLedger:
    """The budget of a session that a run has. `resource` is its name in messages, such as `Session abc`."""

    resource: str
    money: LedgerPart
    tokens: LedgerPart

    @classmethod
    def read(cls, resource: str, limits: str, spent: str | None) -> "SessionLedger":
        """Return the ledger of a record with these limits and totals."""
        parts = [None if limit == UNLIMITED else int(limit) for limit in limits.split()]
        money, tokens = (LedgerPart(limit, total) for limit, total in zip(parts, unpack(spent), strict=True))
        return cls(resource, money, tokens)

    def pack(self) -> str:
        """Return the totals as the records of the session and of its runs have them."""
        return f"{self.money.total} {self.tokens.total}"

    def note(self, spent: str | None) -> bool:
        """Take over the totals of a log, and return whether they are newer than those that were known."""
        before = self.money.earlier, self.tokens.earlier
        self.money.earlier, self.tokens.earlier = map(max, before, unpack(spent))
        return before != (self.money.earlier, self.tokens.earlier)

    def require(self, microdollars: float = 1, tokens: int = 1) -> None:
        """Raise QuotaExceeded if less is left than a call needs at least, by default if nothing is left."""
        if self.money.left < microdollars:
            raise self.refuse("dollars", self.money, microdollars, MICRO)
        if self.tokens.left < tokens:
            raise self.refuse("tokens", self.tokens, tokens, 1)

    def refuse(self, unit: str, part: LedgerPart, least: float, scale: int) -> QuotaExceeded:
        """Return the error of money or tokens of which less is left than needed."""
        limit, spent = format_limit((part.limit or 0) / scale), format_limit(part.total / scale)
        needed = ", and open calls have reserved the rest" if part.opened else ""
        if part.left > 0:
            needed = f", and this call needs at least {format_limit(least / scale)}"
        kind = self.resource.split()[0].lower()
        fork = ", or fork this one with a budget" if kind == "session" else ""
        return QuotaExceeded(
            f"{self.resource} has spent {spent} of the {limit} {unit} of its budget{needed}. Create a {kind} with a "
            f"larger max_{unit}{fork}."
        )

    def show(self) -> SpentBudget:
        """Return the budget as the API shows it."""
        shown = SpentBudget()
        if (limit := self.money.limit) is not None:
            spent = self.money.total
            shown.max_dollars, shown.spent_dollars = limit / MICRO, spent / MICRO
            shown.remaining_dollars = max(limit - spent, 0) / MICRO
        if (most := self.tokens.limit) is not None:
            spent = self.tokens.total
            shown.max_tokens, shown.spent_tokens, shown.remaining_tokens = most, spent, max(most - spent, 0)
        return shown


def unpack(spent: str | None) -> tuple[int, int]:
    """Return the microdollars and the tokens of a record, which has none before its first run has ended."""
    dollars, tokens = (spent or "0 0").split()
    return int(dollars), int(tokens)


def newer(first: str | None, second: str | None) -> str:
    """Return the larger ones of two totals."""
    return " ".join(map(str, map(max, unpack(first), unpack(second))))
