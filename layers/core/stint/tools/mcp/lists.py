"""A cache of tool lists, of failed listings, and of the revisions that servers speak, in a warm process.

Each turn needs the lists of its servers before its model call, so a list is read once for many turns:

    the entry is       a turn
    fresh              uses the list
    stale              asks the server; if that fails, it uses the list
    a failure          fails at once until `retry`, or uses the list from before

Entries are of one server and one caller, whose key may decide what is listed. The oldest ones go first when there are
too many, or too many bytes.
"""

import json
import time
from enum import Enum

from stint.dataclasses import dataclass, field
from stint.domain.errors import StintError
from stint.domain.inference import ToolSignature

MOST_LISTS = 200
MOST_BYTES = 4_000_000
"""Maximum bytes of all lists as JSON. As objects they take about ten times as much."""


LEAST_FRESH_SECONDS = 30.0
"""Minimum seconds for which a list is fresh, if the server says how long. Most servers say 0 because they say nothing,
and each turn would wait for them."""


class McpRevision(Enum):
    """How a server is spoken to: request by request, or in sessions."""

    stateless = "2026-07-28"
    sessions = "2025-11-25"


@dataclass(slots=True)
class CachedToolList:
    """A cached list, fresh until `expiry`. `failure` is the error of the last request, kept until `retry`."""

    tools: list[ToolSignature] | None = None
    expiry: float = 0.0
    failure: StintError | None = None
    retry: float = 0.0
    size: int = 0


@dataclass(slots=True)
class ToolLists:
    """Lists by endpoint and caller, fresh for `seconds`.

    A stale list is used while its server is unavailable. A slow failure is cached for `retry_seconds`, so that callers
    wait for it once.
    """

    seconds: float
    retry_seconds: float
    kept: dict[str, CachedToolList] = field(default_factory=dict)
    revisions: dict[str, tuple[McpRevision, float]] = field(default_factory=dict)
    """The revisions of servers, with the times until which they hold: as long as lists do."""

    def revision(self, key: str) -> McpRevision | None:
        """Return the revision of a server if it is known."""
        revision, expiry = self.revisions.get(key, (None, 0.0))
        return revision if time.monotonic() < expiry else None

    def put_revision(self, key: str, revision: McpRevision) -> None:
        self.revisions.pop(key, None)
        while len(self.revisions) >= MOST_LISTS:
            del self.revisions[next(iter(self.revisions))]
        self.revisions[key] = revision, time.monotonic() + self.seconds

    def forget_revision(self, key: str) -> None:
        self.revisions.pop(key, None)

    def fresh(self, key: str) -> list[ToolSignature] | None:
        """Return a list if it is fresh."""
        found = self.kept.get(key)
        return found.tools if found and time.monotonic() < found.expiry else None

    def known(self, key: str) -> list[ToolSignature] | None:
        """Return a list of any age."""
        found = self.kept.get(key)
        return found.tools if found else None

    def failure(self, key: str) -> StintError | None:
        """Return the cached error of a server; None if it can be contacted."""
        found = self.kept.get(key)
        return found.failure if found and time.monotonic() < found.retry else None

    def put(self, key: str, tools: list[ToolSignature], seconds: float | None = None) -> None:
        """Cache a list. `seconds`: for how long the server lets clients use it."""
        fresh = self.seconds if seconds is None else min(self.seconds, max(seconds, LEAST_FRESH_SECONDS))
        size = sum(map(size_of, tools))
        self._put(key, CachedToolList(tools, time.monotonic() + fresh, size=size))

    def expire(self, key: str) -> None:
        """Mark a list as stale, because its server does not know one of its tools."""
        if key in self.kept:
            self.kept[key].expiry = 0.0

    def fail(self, key: str, failure: StintError) -> None:
        """Cache the failure of a listing."""
        found = self.kept.get(key, CachedToolList())
        self._put(
            key,
            CachedToolList(found.tools, found.expiry, failure, time.monotonic() + self.retry_seconds, size=found.size),
        )

    def _put(self, key: str, kept: CachedToolList) -> None:
        self.kept.pop(key, None)
        # The oldest first: a list that is put again moves to the end.
        while self.kept and (len(self.kept) >= MOST_LISTS or self._size() + kept.size > MOST_BYTES):
            del self.kept[next(iter(self.kept))]
        self.kept[key] = kept

    def _size(self) -> int:
        return sum(kept.size for kept in self.kept.values())


def size_of(tool: ToolSignature) -> int:
    """Return the size of a tool as JSON, in characters."""
    return len(tool.name) + len(tool.description) + len(json.dumps([tool.parameters, tool.annotations]))
