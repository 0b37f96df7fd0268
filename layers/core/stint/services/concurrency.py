"""Results of calls that were awaited concurrently."""

from typing import TypeVar

T = TypeVar("T")


def value_of(outcome: T | BaseException) -> T:
    """Return a result of `asyncio.gather`, or raise its exception."""
    if isinstance(outcome, BaseException):
        raise outcome
    return outcome
