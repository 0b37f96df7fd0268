"""Receipts: what a turn or response consumed, and what it cost.

A run stores what it counted (`Consumption`), and the API derives the receipt from that. So a count that was stored by
an older version has defaults for what it did not count, and what a receipt shows may change without a change of
records. Dollars are computed when they are counted: later prices do not change what a run has cost.
"""

from typing import Annotated

from pydantic import Field

from stint.domain.fields import is_unset
from stint.domain.inference import CACHE_COUNTS, Usage
from stint.domain.schema import Schema

DIGITS = 9
"""Decimal places of dollars. A write unit costs less than a millionth."""


Count = Annotated[int, Field(exclude_if=is_unset)]
"""A count that is not stored while it is 0, because each record pays for its bytes."""


class Consumption(Schema):
    """The consumption of a run, as it is stored with the run's ending."""

    model_calls: Count = 0
    tool_calls: Count = 0
    """Calls that the server ran."""
    input_tokens: Count = 0
    cached_tokens: Count = 0
    cache_write_tokens: Count = 0
    cache_write_1h_tokens: Count = 0
    output_tokens: Count = 0
    reasoning_tokens: Count = 0
    write_units: Count = 0
    """Units of DynamoDB."""
    read_units: Count = 0
    """Units of DynamoDB."""
    milliseconds: Count = 0
    """Time of the function."""
    sandbox_milliseconds: Count = 0
    """Time of the function that runs code."""
    memory_mb: Count = 0
    """Memory of the function; 0 outside of Lambda."""
    model_dollars: float | None = None
    """None if the price of a model is not known."""
    infrastructure_dollars: Annotated[float, Field(exclude_if=is_unset)] = 0.0
    hides_cache: Annotated[bool, Field(exclude_if=is_unset)] = False
    """Receipts show neither the counts of the provider's cache nor the dollars, which tell them."""

    def __add__(self, other: "Consumption") -> "Consumption":
        # One unknown price makes the sum unknown: a part of it would look like the whole.
        known = self.model_dollars is not None and other.model_dollars is not None
        return Consumption(
            **{name: getattr(self, name) + getattr(other, name) for name in COUNTS},
            memory_mb=max(self.memory_mb, other.memory_mb),
            model_dollars=round((self.model_dollars or 0) + (other.model_dollars or 0), DIGITS) if known else None,
            infrastructure_dollars=round(self.infrastructure_dollars + other.infrastructure_dollars, DIGITS),
            hides_cache=self.hides_cache or other.hides_cache,
        )

    def add_call(self, usage: Usage, dollars: float | None) -> None:
        """Add a model call, and its price if it is known."""
        self.model_calls += 1
        self.add_usage(usage)
        known = self.model_dollars is not None and dollars is not None
        self.model_dollars = round((self.model_dollars or 0) + (dollars or 0), DIGITS) if known else None

    def add_usage(self, usage: Usage) -> None:
        """Add the tokens of a model call."""
        self.input_tokens += usage.input_tokens
        self.cached_tokens += usage.cached_tokens
        self.cache_write_tokens += usage.cache_write_tokens
        self.cache_write_1h_tokens += usage.cache_write_1h_tokens
        self.output_tokens += usage.output_tokens
        self.reasoning_tokens += usage.reasoning_tokens


COUNTS = (
    *("model_calls", "tool_calls", "input_tokens", "cached_tokens", "cache_write_tokens", "cache_write_1h_tokens"),
    *("output_tokens", "reasoning_tokens", "write_units", "read_units", "milliseconds", "sandbox_milliseconds"),
)


class Receipt(Schema):
    """The consumption of a turn or response, and its cost in US dollars at list prices.

    Tokens are those of `Usage`. `tool_calls` are those that the server ran, `sandbox_milliseconds` the time of the code
    that it ran. `model_dollars` and `dollars` are null if the price of a model is not known, or hidden.
    """

    model_calls: int
    tool_calls: int
    input_tokens: int
    cached_tokens: int
    cache_write_tokens: int
    cache_write_1h_tokens: int
    output_tokens: int
    reasoning_tokens: int
    write_units: int
    read_units: int
    milliseconds: int
    sandbox_milliseconds: int
    memory_mb: int
    model_dollars: float | None
    infrastructure_dollars: float
    dollars: float | None

    @classmethod
    def of(cls, consumption: Consumption) -> "Receipt":
        if consumption.hides_cache:
            consumption = consumption.model_copy(update=dict.fromkeys(CACHE_COUNTS, 0) | {"model_dollars": None})
        known, total = consumption.model_dollars, consumption.infrastructure_dollars
        dollars = None if known is None else round(known + total, DIGITS)
        shown = {name: getattr(consumption, name) for name in cls.model_fields if name != "dollars"}
        return cls(**shown, dollars=dollars)
