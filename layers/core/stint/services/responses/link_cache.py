"""Ended links of chains in a warm process, in the form that the responses that continue them need.

A chain of responses is read again with each new response. In a warm process most of its links were read before, and an
ended response never changes; so an entry has what a link adds to the context, and only deletions have to be checked.

The cache counts bytes, not entries, because links differ by a factor of a thousand. It is shared by tenants, whose ids
are in its keys, and by threads, hence the lock. `TenantLinks` holds the entries of one request, so that one which is
dropped meanwhile can still be added.
"""

from collections import OrderedDict
from collections.abc import Mapping
from threading import Lock

from stint.dataclasses import dataclass, field
from stint.domain.inference import ModelMessage
from stint.domain.tools import ToolCall

MAX_BYTES = 16_000_000
"""Bound of a cache for which none is given, about 1,400 short links."""

ENTRY_BYTES = 2_500
"""Memory of a link without its texts. These take up to four times their bytes of JSON."""

NOTE_BYTES = 500
"""Memory of a link of which only the previous one is known."""


@dataclass(frozen=True, slots=True)
class CachedLink:
    """The messages that an ended response adds to a context, after all responses before it.

    It is the same each time, because an ended response never changes, and those before it are the same.
    """

    previous: str | None
    """The response that it continues."""

    size: int
    """Bytes of JSON."""

    start: int
    """The number of the messages before it that it keeps. Its own are appended to them."""

    messages: tuple[ModelMessage, ...]
    open: Mapping[str, ToolCall]
    """The calls that have no result after it, by their ids."""

    answered: bool
    """Whether the last message after it is an answer of the model."""

    opaque_left: int
    """The bytes of opaque texts that may still be read after it."""

    call_ids: tuple[str, ...]
    item_ids: tuple[str, ...]
    function_calls: tuple[str, ...]
    excused: tuple[str, ...]
    """Its open calls that need no results, because it failed or was cancelled."""

    sources: Mapping[str, str]
    """The names of the files that it found, by their ids."""

    containers: tuple[str, ...] = ()
    """The ids of the containers in which its code ran."""

    compacted: int = 0
    """With a compaction, it replaces all before it. The first messages, this many, are then the summary."""

    @property
    def memory(self) -> int:
        """Estimate the bytes that it takes."""
        return ENTRY_BYTES + 4 * self.size


class LinkCache:
    """The ended links that a process has read, the least recently used of which are dropped.

    Nothing in it is current by itself: a caller checks that a response was not deleted. Tenants, threads and event
    loops share it. Of a response that has not ended, it has only the id of the previous one.
    """

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self.max_bytes = max_bytes
        self._lock = Lock()
        self._entries: OrderedDict[tuple[str, str], CachedLink | str] = OrderedDict()
        self.bytes = 0

    def get(self, tenant: str, response_id: str) -> CachedLink | None:
        found = self._use(tenant, response_id)
        return found if isinstance(found, CachedLink) else None

    def previous_of(self, tenant: str, response_id: str) -> str | None:
        """Return the id of the response that one continues, or None if there is none or it is not known."""
        found = self._use(tenant, response_id)
        return found.previous if isinstance(found, CachedLink) else found

    def put(self, tenant: str, response_id: str, link: CachedLink) -> None:
        """Add an ended response."""
        self._put((tenant, response_id), link)

    def note_previous(self, tenant: str, response_id: str, previous: str) -> None:
        """Add the id that a new response continues from."""
        self._put((tenant, response_id), previous)

    def forget(self, tenant: str, response_id: str) -> None:
        """Drop a response that was deleted."""
        with self._lock:
            self._remove((tenant, response_id))

    def _use(self, tenant: str, response_id: str) -> CachedLink | str | None:
        key = (tenant, response_id)
        with self._lock:
            found = self._entries.get(key)
            if found is not None:
                self._entries.move_to_end(key)
            return found

    def _put(self, key: tuple[str, str], entry: CachedLink | str) -> None:
        with self._lock:
            self._remove(key)
            if _memory_of(entry) > self.max_bytes:
                return
            self._entries[key] = entry
            self.bytes += _memory_of(entry)
            while self.bytes > self.max_bytes:
                self._remove(next(iter(self._entries)))

    def _remove(self, key: tuple[str, str]) -> None:
        removed = self._entries.pop(key, None)
        if removed is not None:
            self.bytes -= _memory_of(removed)


def _memory_of(entry: CachedLink | str) -> int:
    return entry.memory if isinstance(entry, CachedLink) else NOTE_BYTES


@dataclass(frozen=True, slots=True)
class TenantLinks:
    """The cached links of a tenant for one request. Those that it has `used` stay, even if the cache drops them."""

    cache: LinkCache
    tenant: str
    used: dict[str, CachedLink] = field(default_factory=dict)

    def size_of(self, response_id: str, /) -> int | None:
        link = self.cache.get(self.tenant, response_id)
        if link is None:
            return None
        self.used[response_id] = link
        return link.size

    def previous_of(self, response_id: str, /) -> str | None:
        return self.cache.previous_of(self.tenant, response_id)

    def compacts(self, response_id: str, /) -> bool:
        link = self.used.get(response_id)
        return link is not None and link.compacted > 0

    def forget(self, response_id: str, /) -> None:
        self.cache.forget(self.tenant, response_id)
