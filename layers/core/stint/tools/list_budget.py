"""How much the servers of one request may send when they list their tools."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from stint.domain.errors import InvalidRequest

MAX_LIST_BYTES = 1_000_000
"""All that one server sends to list its tools."""

MAX_LISTS_BYTES = 4_000_000
"""All that the servers of one request send to list their tools. As objects they take up to twenty times as much."""


@dataclass(slots=True)
class ListBudget:
    """Counts the bytes of several lists. Raises InvalidRequest (`url_too_large`) when there are too many."""

    left: int = MAX_LISTS_BYTES

    def count(self, size: int) -> None:
        self.left -= size
        if self.left < 0:
            raise InvalidRequest(
                f"The servers' lists of tools have more than {MAX_LISTS_BYTES:,} bytes in all: name fewer servers.",
                code="url_too_large",
            )


_budget: ContextVar[ListBudget | None] = ContextVar("list_budget", default=None)


@contextmanager
def shared_list_budget() -> Iterator[None]:
    """Let all lists that are read in this context, its tasks included, share one budget."""
    token = _budget.set(ListBudget())
    try:
        yield
    finally:
        _budget.reset(token)


def list_budget() -> ListBudget:
    """Return the budget that is shared here, or a new one."""
    return _budget.get() or ListBudget()
