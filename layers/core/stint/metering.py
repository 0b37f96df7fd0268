"""The meter of a run: what a turn, a response or a model call consumes. All tasks of a request share it.

The calls that consume are in many layers: the client of DynamoDB, the models, the tools. None of them has the run as an
argument, so the meter is in a context variable, and each `count_` function does nothing outside of a run.

The consumption is written with the run itself, in a record that must know the cost of its own write. So a reader says
how many units follow (`further_writes`), before they are counted.

A run that is resumed in another request, or by another process, has a new meter, and `earlier` is what its log says of
the parts before. Budgets are not known here: `Spending` and `Reservation` are implemented in `stint.spending`.
`model_dollars` is None as soon as one call has no known price, because a sum without it would be too low.
"""

import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from math import ceil
from typing import Any, Protocol

from stint.dataclasses import dataclass, field
from stint.domain.errors import Forbidden, StintError
from stint.domain.inference import DEFAULT_TIER, Usage
from stint.domain.prices import MILLION, ModelPrice, Prices
from stint.domain.receipts import DIGITS, Consumption

READS = frozenset({"GetItem", "BatchGetItem", "Query"})
FIRST_CALL_TOKENS = 1_000
"""Tokens each way whose price is reserved together with a run, before its first model call is known."""


class Reservation(Protocol):
    """The reservation of a model call."""

    @property
    def dollars(self) -> float:
        """Return the money that is reserved for the call."""
        ...

    @property
    def most_dollars(self) -> float:
        """Return the money that was left for the call when it began, with what is reserved for it."""
        ...

    @property
    def most_tokens(self) -> float:
        """Return the tokens that were left for the call when it began; inf if they end no answer."""
        ...

    async def top_up(self, dollars: float) -> float:
        """Reserve more money, and return how much: less if less is left, 0 if nothing is."""
        ...

    async def settle(self, tokens: int, dollars: float, shown_dollars: float, /) -> None:
        """Replace the reservation by what the call has spent. `shown_dollars` are those that its caller may know."""
        ...


class Spending(Protocol):
    """The budgets of a run. `admit` and `admit_call` raise a StintError if a budget does not allow them."""

    @property
    def limits_money(self) -> bool:
        """Return whether the caller has a limit of money."""
        ...

    async def admit(self, requests: int = 1, dollars: float = 0.0) -> None:
        """Admit the run, which counts as so many requests, before anything of it is announced.

        Its first model call will probably cost so much. If less is left, that is reserved.
        """
        ...

    async def admit_call(self, tokens: int, dollars: float, least_dollars: float, least_tokens: int, /) -> Reservation:
        """Reserve what a model call may spend. If less is left, that is reserved, but not less than the least."""
        ...

    async def close(self, dollars: float, *, started: bool) -> None:
        """Settle a run that has spent `dollars` besides its model calls, or that did not start."""
        ...

    def to_headers(self) -> dict[str, str]:
        """Return the headers with the caller's remaining budget."""
        ...


@dataclass(slots=True)
class Meter:
    """The consumption of a run since it began."""

    prices: Prices = field(default_factory=Prices)
    memory_mb: int = 0
    """The memory of the function; 0 outside of Lambda."""

    spending: Spending | None = None
    """The budgets of the caller; None without any."""

    earlier: Consumption | None = None
    """What was consumed before the run was resumed."""

    counted: Consumption = field(default_factory=lambda: Consumption(model_dollars=0.0))
    """What was counted so far, without the units of DynamoDB, the time and their price."""

    write_units: float = 0.0
    """Write units of DynamoDB, as it reports them."""

    read_units: float = 0.0
    """Read units of DynamoDB, in halves."""

    started: float = field(default_factory=lambda: time.monotonic())
    """When the run began, on the monotonic clock, in seconds."""

    closed: bool = False
    """Whether the budgets have been settled."""

    calls: list[tuple[str, Usage, float | None]] = field(default_factory=list)
    """The model calls: the full id of the model, its usage, and its dollars if they are known."""

    deadline: float | None = None
    """The end of the run by the clock of the event loop; None if it is not known."""

    agent_id: str = ""
    session_id: str = ""
    """The session of the run, or its conversation."""

    user_hash: str = ""
    """The hash of the end user that the request names."""

    async def admit(self, requests: int = 1, find_model: "FindModel | None" = None) -> None:
        """Admit the run under its budgets. `find_model` returns the full id of its model, if it has one.

        Raises:
            StintError: a budget does not allow it.
            Forbidden: the caller has a limit of money, and the model has no price.
        """
        if self.spending is None:
            return
        model_id, dollars = "", 0.0
        if find_model is not None and self.spending.limits_money:
            with suppress(StintError):  # the run itself will fail because of it
                model_id = await find_model()
            first_call = Usage(input_tokens=FIRST_CALL_TOKENS, output_tokens=FIRST_CALL_TOKENS)
            dollars = self.require_price(model_id).cost_of(first_call) if model_id else 0.0
        await self.spending.admit(requests, dollars)

    def require_price(self, model_id: str) -> ModelPrice:
        """Return the price of a model that is about to be called, by its full id; nothing if no money is counted.

        Raises Forbidden if the caller has a limit of money, and the model has no price.
        """
        price = self.prices.find(model_id)
        if price is None and self.spending is not None and self.spending.limits_money:
            raise Forbidden(
                f"The model {model_id!r} has no price, and this caller has a limit of money. Use a model with a price, "
                "or ask the operator to add this one to STINT_PRICES (parameter Prices).",
                code="model_without_price",
                param="model",
            )
        return price or ModelPrice(input=0, output=0)

    def count_call(self, model_id: str, usage: Usage | None, tier: str = DEFAULT_TIER) -> float:
        """Count a model call in a service tier, and return its dollars. `model_id` has the provider."""
        price = self.prices.find(model_id)
        dollars = None if price is None or usage is None else price.in_tier(tier).cost_of(usage)
        return self._count(model_id, usage, dollars)

    def count_image(self, model_id: str, usage: Usage | None) -> float:
        """Count a model call that generated an image, and return its dollars. Many image models count no tokens."""
        price = self.prices.find(model_id)
        priced = price is not None and (usage is not None or price.image > 0)
        dollars = price.cost_of(usage or Usage(), images=1) if price and priced else None
        return self._count(model_id, usage, dollars)

    def _count(self, model_id: str, usage: Usage | None, dollars: float | None) -> float:
        call = model_id, usage or Usage(), dollars
        self.calls.append(call)
        self.counted.add_call(*call[1:])
        return dollars or 0.0

    @property
    def by_model(self) -> dict[str, Consumption]:
        """Return what was counted of each model that was called, by its full id."""
        found: dict[str, Consumption] = {}
        for model_id, usage, dollars in self.calls:
            found.setdefault(model_id, Consumption(model_dollars=0.0)).add_call(usage, dollars)
        return found

    def read(self, further_writes: int = 0) -> Consumption:
        """Return what the run has consumed, `earlier` included. `further_writes` are the units that will follow."""
        now = self.read_own(further_writes)
        return now if self.earlier is None else self.earlier + now

    @property
    def infrastructure_dollars(self) -> float:
        """Return the price of what the run has consumed besides its model calls since the meter began."""
        return self._price(round(self.write_units), self._milliseconds())

    @property
    def dollars(self) -> float:
        """Return the price of all that the run has consumed since the meter began, as far as it is known."""
        return (self.counted.model_dollars or 0.0) + self.infrastructure_dollars

    def read_own(self, further_writes: int = 0) -> Consumption:
        """Return what the run has consumed since the meter began."""
        writes, milliseconds = round(self.write_units) + further_writes, self._milliseconds()
        return self.counted.model_copy(
            update={
                "write_units": writes,
                "read_units": ceil(self.read_units),
                "milliseconds": milliseconds,
                "memory_mb": self.memory_mb,
                "infrastructure_dollars": self._price(writes, milliseconds),
            }
        )

    def _milliseconds(self) -> int:
        return round((time.monotonic() - self.started) * 1000)

    def _price(self, writes: int, milliseconds: int) -> float:
        cost = self.prices.infrastructure.cost_of(writes, self.read_units, milliseconds, self.memory_mb)
        return round(self.counted.infrastructure_dollars + cost, DIGITS)


_meter: ContextVar[Meter | None] = ContextVar("meter", default=None)


def set_meter(meter: Meter | None) -> None:
    """Set the meter of the following code in this context, and of the tasks that it starts."""
    _meter.set(meter)


def find_meter() -> Meter | None:
    """Return the meter of the current run, or None outside of one."""
    return _meter.get()


def name_run(agent_id: str, session_id: str) -> None:
    """Set the agent and the session, or the conversation, of the current run. Do nothing outside of a run."""
    if (meter := _meter.get()) is not None:
        meter.agent_id, meter.session_id = agent_id, session_id


def set_deadline(deadline: float) -> None:
    """Set the end of the current run, a time of the event loop's clock. Do nothing outside of a run."""
    if (meter := _meter.get()) is not None:
        meter.deadline = deadline


def find_deadline() -> float | None:
    """Return the end of the current run; None if it is not known."""
    return meter.deadline if (meter := _meter.get()) is not None else None


def resume_meter(earlier: Consumption | None) -> None:
    """Continue what a run had consumed before it was resumed. Do nothing outside of a run."""
    meter = _meter.get()
    if meter is not None:
        meter.earlier = earlier


FindModel = Callable[[], Awaitable[str]]


async def admit_run(requests: int = 1, find_model: FindModel | None = None) -> None:
    """Admit the current run under its budgets, as so many requests. Raises as `Meter.admit`.

    `find_model` returns the full id of its model, and is called only if the caller has a limit of money.
    """
    meter = _meter.get()
    if meter is not None:
        await meter.admit(requests, find_model)


ENDING_UNITS = 2
"""Write units of a small record with an ending, and of the release of the lease."""


def read_meter(further_writes: int) -> Consumption | None:
    """Return what the current run has consumed, with the units of the writes that end it; None outside of one."""
    meter = _meter.get()
    return None if meter is None else meter.read(further_writes)


def count_writes(consumption: Consumption, units: int) -> None:
    """Add write units, and their price in the current run, to a consumption that was read from the run's meter.

    The meter itself does not count them. Do nothing outside of a run.
    """
    meter = _meter.get()
    if meter is not None:
        dollars = units * meter.prices.infrastructure.write_units / MILLION
        consumption.write_units += units
        consumption.infrastructure_dollars = round(consumption.infrastructure_dollars + dollars, DIGITS)


def count_tool_calls(calls: int) -> None:
    """Count calls of tools that the server runs. Do nothing outside of a run."""
    meter = _meter.get()
    if meter is not None:
        meter.counted.tool_calls += calls


def count_sandbox(milliseconds: int, memory_mb: int | None = None) -> None:
    """Count the time of code, and its price: in a function with so much memory, or in AgentCore without `memory_mb`.

    Do nothing outside of a run.
    """
    meter = _meter.get()
    if meter is None:
        return
    meter.counted.sandbox_milliseconds += milliseconds
    prices = meter.prices.infrastructure
    session = milliseconds / 1000 * prices.agentcore_seconds
    dollars = session if memory_mb is None else prices.cost_of_invocation(milliseconds, memory_mb)
    meter.counted.infrastructure_dollars += dollars


def count_capacity(operation: str, consumed: Mapping[str, Any] | list[Mapping[str, Any]]) -> None:
    """Count the units of a call of DynamoDB by its `ConsumedCapacity`. Do nothing outside of a run."""
    meter = _meter.get()
    if meter is None:
        return
    units = sum([each["CapacityUnits"] for each in (consumed if isinstance(consumed, list) else [consumed])])
    if operation in READS:
        meter.read_units += units
    else:
        meter.write_units += units
