"""Lists of tools that a warm process keeps, and which servers did not give one."""

import json
import time
from dataclasses import dataclass, field

from stint.domain.errors import StintError
from stint.domain.inference import ToolSignature

MOST_LISTS = 200
MOST_BYTES = 4_000_000
"""Of all lists as JSON; as objects they take about ten times as much."""


@dataclass(slots=True)
class Kept:
    """A list, fresh until `expiry`. `failure` is the error of the last request for it, kept until `retry`."""

    tools: list[ToolSignature] | None = None
    expiry: float = 0.0
    failure: StintError | None = None
    retry: float = 0.0
    size: int = 0


@dataclass(slots=True)
class ToolLists:
    """Lists by endpoint and caller, fresh for `seconds`.

    An old list is better than none while its server is away. A failure that cost time is remembered for
    `retry_seconds`, so that it costs that once.
    """

    seconds: float
    retry_seconds: float
    kept: dict[str, Kept] = field(default_factory=dict)

    def fresh(self, key: str) -> list[ToolSignature] | None:
        """Give a list that needs no asking for."""
        found = self.kept.get(key)
        return found.tools if found and time.monotonic() < found.expiry else None

    def known(self, key: str) -> list[ToolSignature] | None:
        """Give a list however old it is."""
        found = self.kept.get(key)
        return found.tools if found else None

    def failure(self, key: str) -> StintError | None:
        """Return what a server failed with a short time ago; None when it is to be asked."""
        found = self.kept.get(key)
        return found.failure if found and time.monotonic() < found.retry else None

    def keep(self, key: str, tools: list[ToolSignature]) -> None:
        size = sum(len(tool.name) + len(tool.description) + len(json.dumps(tool.parameters)) for tool in tools)
        self._put(key, Kept(tools, time.monotonic() + self.seconds, size=size))

    def expire(self, key: str) -> None:
        """Let a list be asked for again: its server does not know a tool of it."""
        if key in self.kept:
            self.kept[key].expiry = 0.0

    def fail(self, key: str, failure: StintError) -> None:
        """Remember that a server did not give its list."""
        found = self.kept.get(key, Kept())
        self._put(key, Kept(found.tools, found.expiry, failure, time.monotonic() + self.retry_seconds, found.size))

    def _put(self, key: str, kept: Kept) -> None:
        self.kept.pop(key, None)
        while self.kept and (len(self.kept) >= MOST_LISTS or self._size() + kept.size > MOST_BYTES):
            del self.kept[next(iter(self.kept))]
        self.kept[key] = kept

    def _size(self) -> int:
        return sum(kept.size for kept in self.kept.values())
