"""Results of calls that were awaited together."""

from typing import TypeVar

T = TypeVar("T")


def value_of(outcome: T | BaseException) -> T:
    """Give what was awaited beside other things, or raise what became of it."""
    if isinstance(outcome, BaseException):
        raise outcome
    return outcome
