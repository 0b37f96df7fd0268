"""The meters of runs, with the budgets of their callers.

A run is what is metered as one: a turn, a response, a request for a model call. Its meter lives in a context variable,
so that the code that calls a model or the table counts without knowing of the run. `begin` and `end` are separate for
runs that outlive the call that starts them, such as streams; `request` is both, for those that do not.

    begin   a meter, and the watch for stops; nothing is written
    admit   the request is counted and money reserved (`Meter.admit`), before anything of the run is announced
    end     the watch ends, reserved money that was not spent is returned, and the sums of usage get the run; a second
            `end` of the same meter settles nothing

A stack without limits, or one that sums no usage, does not load the modules of these, since each import delays a cold
start.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import cached_property, partial, wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar

from stint.caller import find_principal
from stint.domain.prices import Prices
from stint.domain.principals import NO_BUDGETS, Budgets
from stint.domain.receipts import Consumption
from stint.metering import Meter, Spending, find_meter, set_meter
from stint.request_totals import count_dollars
from stint.run_stop import admit_model_call, ending_on_stop, refuse_stopped
from stint.spending.stop_monitor import StopMonitor
from stint.store.store import Store

if TYPE_CHECKING:
    from stint.spending.blocks import ReservedBlocks
    from stint.spending.usage import UsageReports

P = ParamSpec("P")
T = TypeVar("T")


class Meters:
    """Begins and ends the meters of a tenant's runs.

    `budgets` are the tenant's own; a caller's key may have others. `memory_mb` is that of the function.
    With `sums_usage`, each run is added to the sums of its day. With `hides_cache`, callers do not see the use of a
    provider's cache.
    """

    def __init__(
        self,
        tenant: str,
        store: Store,
        prices: Prices,
        budgets: Budgets,
        memory_mb: int,
        *,
        sums_usage: bool = False,
        hides_cache: bool = False,
    ) -> None:
        self.tenant = tenant
        self.store = store
        self.prices = prices
        self.budgets = budgets
        self.memory_mb = memory_mb
        self.sums_usage = sums_usage
        self.hides_cache = hides_cache
        self.stops = StopMonitor(tenant, store)

    def begin(self) -> Meter:
        """Begin the meter of a run, which the following code and its tasks share, and watch whether it is stopped."""
        counted = Consumption(model_dollars=0.0, hides_cache=self.hides_cache)
        meter = Meter(self.prices, self.memory_mb, self.make_spending(), counted=counted)
        set_meter(meter)
        self.stops.begin()
        return meter

    async def end(self, *, started: bool = True) -> None:
        """Settle the budgets of the current run, and add it to the sums of usage, once."""
        self.stops.end()
        meter = find_meter()
        # A run ends where it fails and where its stream ends, and both may happen.
        if meter is None or meter.closed:
            return
        meter.closed = True
        if started:
            count_dollars(meter.dollars)
        if meter.spending is not None:
            await meter.spending.close(meter.infrastructure_dollars, started=started)
        if started and self.sums_usage:
            await self.usage.add(meter.agent_id, meter.session_id, meter.read_own(), meter.by_model)

    @asynccontextmanager
    async def watch(self) -> AsyncGenerator[None, None]:
        """End the body when an admin stops the caller's key or the tenant. It is no run, and counts for no budget.

        Raises Stopped.
        """
        with self.stops.watched():
            await refuse_stopped()
            async with ending_on_stop():
                yield

    @asynccontextmanager
    async def request(
        self, *, acts: bool = False, count: int = 1, deadline: float | None = None
    ) -> AsyncGenerator[None, None]:
        """Meter the body as a run of its own, which ends when an admin stops it.

        With `acts`, it may change something elsewhere, so it begins only when it is known that it was not stopped.
        `count` is the number of requests that it counts as, `deadline` its end by the event loop's clock.

        Raises:
            RateLimitExceeded, QuotaExceeded: a budget is used up.
            InvalidRequest: it counts as more requests than a minute has.
            Stopped: the caller's key or the tenant was stopped.
        """
        meter, started = self.begin(), False
        try:
            meter.deadline = deadline
            await meter.admit(max(count, 1))
            # `admit_model_call` waits for the check only if a stop is known. Else the check runs beside the body, and a
            # stop ends the body.
            await (refuse_stopped() if acts else admit_model_call())
            started = True
            async with ending_on_stop():
                yield
            await refuse_stopped()
        finally:
            await self.end(started=started)

    def make_spending(self) -> Spending | None:
        """Return the budgets of the current caller; None if nothing limits it, in which case nothing is loaded."""
        principal = find_principal()
        of_caller = principal.budgets if principal else NO_BUDGETS
        if self.budgets.is_unlimited and of_caller.is_unlimited:
            return None
        from stint.spending.budgets import RunBudgets  # noqa: PLC0415 - see above
        from stint.spending.holders import BudgetHolder  # noqa: PLC0415
        from stint.store import keys  # noqa: PLC0415

        holders = [BudgetHolder(f"Tenant {self.tenant!r}", partial(keys.tenant_budget, self.tenant), self.budgets)]
        if principal and principal.key_id:
            key_of = partial(keys.key_budget, self.tenant, principal.key_id)
            holders.append(BudgetHolder(f"API key {principal.key_id!r}", key_of, of_caller))
        elif principal:
            key_of = partial(keys.subject_budget, self.tenant, principal.subject)
            holders.append(BudgetHolder(f"Subject {principal.subject!r}", key_of, of_caller))
        limited = [holder for holder in holders if not holder.budgets.is_unlimited]
        return RunBudgets(self.blocks, limited)

    @cached_property
    def blocks(self) -> "ReservedBlocks":
        from stint.spending.blocks import ReservedBlocks  # noqa: PLC0415 - see above

        return ReservedBlocks(self.store.budgets)

    @cached_property
    def usage(self) -> "UsageReports":
        """Return the tenant's sums of usage."""
        from stint.spending.usage import UsageReports  # noqa: PLC0415 - few stacks have them

        return UsageReports(self.tenant, self.store, self.sums_usage, self.hides_cache)


class HasMeters(Protocol):
    """A use case that begins runs."""

    @property
    def meters(self) -> Meters:
        """Return the meters of its tenant."""
        ...


U = TypeVar("U", bound=HasMeters)


def metered(
    start: Callable[Concatenate[U, P], Awaitable[T]],
) -> Callable[Concatenate[U, P], Coroutine[Any, Any, T]]:
    """Begin a meter for the run that a method starts, and end it if the method fails."""

    @wraps(start)
    async def start_metered(self: U, /, *args: P.args, **kwargs: P.kwargs) -> T:
        self.meters.begin()
        try:
            return await start(self, *args, **kwargs)
        except BaseException:
            await self.meters.end(started=False)
            raise

    return start_metered
