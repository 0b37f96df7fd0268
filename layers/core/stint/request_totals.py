"""The totals of a request over all of its runs, which its metrics show.

A context variable holds one mutable object for each request, so that its tasks, which have copies of the context, add
to the same totals.
"""

from contextvars import ContextVar

from stint.dataclasses import dataclass
from stint.domain.errors import ContextLengthExceeded, ModelError


@dataclass(slots=True)
class RequestTotals:
    """The consumption of a request in all of its runs, for its metrics. All tasks of a request share them."""

    dollars: float = 0.0
    """Dollars of models and of infrastructure."""
    model_errors: int = 0
    """Model calls that failed, other than by a fault of the caller."""
    lost_traces: int = 0
    """Traces that a receiver did not get."""


_totals: ContextVar[RequestTotals | None] = ContextVar("totals", default=None)


def begin_totals() -> RequestTotals:
    """Begin the totals of a request."""
    totals = RequestTotals()
    _totals.set(totals)
    return totals


def count_dollars(dollars: float) -> None:
    """Add the price of a run that has ended to the totals of the request."""
    totals = _totals.get()
    if totals is not None:
        totals.dollars += dollars


def count_model_error(error: ModelError) -> None:
    """Add a model call that failed to the totals of the request. A request that is too long is the caller's fault."""
    totals = _totals.get()
    if totals is not None and not isinstance(error, ContextLengthExceeded):
        totals.model_errors += 1


def count_lost_trace() -> None:
    """Add a trace that a receiver did not get."""
    totals = _totals.get()
    if totals is not None:
        totals.lost_traces += 1
