"""Limits on the tool lists of a request's servers."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from stint.dataclasses import dataclass
from stint.domain.errors import InvalidRequest

MAX_LIST_BYTES = 1_000_000
"""Maximum bytes of one server's list."""

MAX_LISTS_BYTES = 4_000_000
"""Maximum bytes of all lists of one request. As objects they take up to twenty times as much."""


@dataclass(slots=True)
class ListBudget:
    """Counts the bytes of several lists. Raises InvalidRequest (`url_too_large`) if there are too many."""

    left: int = MAX_LISTS_BYTES

    def count(self, size: int) -> None:
        self.left -= size
        if self.left < 0:
            raise InvalidRequest(
                f"The servers' lists of tools have more than {MAX_LISTS_BYTES:,} bytes in total. Name fewer servers.",
                code="url_too_large",
            )


_budget: ContextVar[ListBudget | None] = ContextVar("list_budget", default=None)


@contextmanager
def shared_list_budget() -> Iterator[None]:
    """Make all lists that are read in this context, including its tasks, share one budget."""
    token = _budget.set(ListBudget())
    try:
        yield
    finally:
        _budget.reset(token)


def list_budget() -> ListBudget:
    """Return the budget of the context, or a new one."""
    return _budget.get() or ListBudget()
