"""The keys that identify a request in its log lines.

All tasks and threads of a request share them, so that a task's line has keys that were added after the task started.
"""

from collections.abc import Mapping
from contextvars import ContextVar

LONGEST = 200
"""Maximum characters of a value, because ids and names of agents come from callers."""

Value = str | bool

_keys: ContextVar[dict[str, Value] | None] = ContextVar("log_keys", default=None)


def begin_log_keys(**keys: Value) -> None:
    """Start a request, whose lines have these keys and none of another request."""
    _keys.set(dict(keys))


def add_log_keys(**keys: Value | None) -> None:
    """Add keys to the following lines, except those that are None. Do nothing outside of a request."""
    current = _keys.get()
    if current is not None:
        # The same dict for all tasks of the request. Setting the variable again would be seen by this task only.
        current.update({key: _shorten(value) for key, value in keys.items() if value is not None})


def end_log_keys() -> None:
    """End a request. Later lines of its context have no keys."""
    _keys.set(None)


def log_keys() -> Mapping[str, Value]:
    """Return the keys of the current request."""
    return _keys.get() or {}


def _shorten(value: Value) -> Value:
    return value[:LONGEST] if isinstance(value, str) else value
