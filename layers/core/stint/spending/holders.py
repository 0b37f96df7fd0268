"""The holders of budgets: keys, subjects and tenants, with their limits and counters, and the errors of spent ones."""

import time
from collections.abc import Callable
from datetime import UTC, datetime

from stint.dataclasses import dataclass
from stint.domain.errors import QuotaExceeded, RateLimitExceeded
from stint.domain.principals import Budgets, format_limit
from stint.store.keys import Key

REQUESTS, TOKENS, MICRODOLLARS = "requests", "tokens", "microdollars"
MINUTE = 60
MICRO = 1_000_000
"""Microdollars of a dollar. Counters are integers, so that sums have no rounding errors."""
KEPT_SECONDS = 3 * 86_400
"""Seconds after the end of a month until its counter expires."""
WHAT_TO_DO = "Ask the operator for a larger budget, or wait for the next month (UTC)."


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

    def refuse_rate(self, name: str, repaid_at: int = 0) -> RateLimitExceeded:
        """Return the error of a minute's limit that is used up, in earlier minutes if it is repaid later."""
        seconds = seconds_left(repaid_at if name == TOKENS else 0)
        used = f"{self.name} has used its {self.limits[name]} {name} of this minute"
        more = ", and repays what earlier answers used above that" if repaid_at > time.time() else ""
        return RateLimitExceeded(f"{used}{more}. Retry in {seconds} s.", retry_after=seconds)

    def refuse_money(self, left: int, least: int) -> QuotaExceeded:
        """Return the error of a month's money of which less is left than needed, both in microdollars."""
        limit = f"its {format_limit(self.budgets.dollars_per_month or 0)} dollars of this month"
        if left <= 0:
            said = f"has spent {limit}, or requests that still run have reserved the rest"
        else:
            left_over, needed = format_limit(left / MICRO), format_limit(least / MICRO)
            said = f"has {left_over} dollars left of {limit}, and this call needs at least {needed}"
        return QuotaExceeded(f"{self.name} {said}. {WHAT_TO_DO}")


def attribute_of(name: str, minute: int) -> str:
    """Return the attribute of a counter: that of the month's money, or of a minute."""
    return name if name == MICRODOLLARS else f"{name}_{minute}"


def month_of(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m")


def end_of(month: str) -> int:
    """Return the time at which a month's counter expires."""
    start = datetime.strptime(f"{month}-01", "%Y-%m-%d").replace(tzinfo=UTC)
    # 31 days for each month: a few days more do no harm.
    return int(start.timestamp()) + 31 * 86_400 + KEPT_SECONDS


def seconds_left(repaid_at: int = 0) -> int:
    """Return the seconds until the next minute, at least one, or until the second `repaid_at`, if that is to come."""
    now = int(time.time())
    return repaid_at - now if repaid_at > now else MINUTE - now % MINUTE
