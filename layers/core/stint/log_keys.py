"""The keys of a request's log lines: they tell whose request a line belongs to.

All tasks and threads of a request share them, so that a line of a task has keys that were added after it was started.
"""

from collections.abc import Mapping
from contextvars import ContextVar

LONGEST = 200
"""Characters of a value that a line shows: ids, and names of agents, come from callers."""

Value = str | bool

_keys: ContextVar[dict[str, Value] | None] = ContextVar("log_keys", default=None)


def begin_log_keys(**keys: Value) -> None:
    """Begin a request: its lines have these keys, and none of another request."""
    _keys.set(dict(keys))


def add_log_keys(**keys: Value | None) -> None:
    """Put keys into every line that follows; those that are None are left out. Outside of a request nothing happens."""
    current = _keys.get()
    if current is not None:
        current.update({key: _shorten(value) for key, value in keys.items() if value is not None})


def end_log_keys() -> None:
    """End a request: what its context logs from here on has no keys."""
    _keys.set(None)


def log_keys() -> Mapping[str, Value]:
    """Return the keys of the current request."""
    return _keys.get() or {}


def _shorten(value: Value) -> Value:
    return value[:LONGEST] if isinstance(value, str) else value
