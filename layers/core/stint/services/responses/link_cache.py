"""Ended links of chains, and conversations, in a warm process, in the form that the responses after them need.

A chain of responses is read again with each new response. In a warm process most of its links were read before, and an
ended response never changes; so an entry has what a link adds to the context, and only deletions have to be checked.
A conversation is one link, which grows (`conversation_reader.py`).

The cache counts bytes, not entries, because links differ by a factor of a thousand. It is shared by tenants, whose ids
are in its keys, and by threads, hence the lock. `TenantLinks` holds the entries of one request, so that one which is
dropped meanwhile can still be added.
"""

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from threading import Lock

from stint.dataclasses import dataclass, field, replace
from stint.domain.inference import ModelMessage
from stint.domain.limits import memory_of
from stint.domain.tools import ToolCall
from stint.store.items import Item

MAX_BYTES = 16_000_000
"""Bound of a cache for which none is given, about 1,400 short links."""

ENTRY_BYTES = 2_500
"""Memory of a link without its texts. These take up to four times their bytes of JSON."""

MESSAGE_BYTES, ID_BYTES = 600, 100
"""Memory of a message, and of an id, without its text: of many empty messages, it is far more than their JSON."""

NOTE_BYTES = 500
"""Memory of a link of which only the previous one is known."""

ITEM_BYTES = 1_000
"""Memory of an item of a conversation without its text: of its message, or its record, and of its ids."""

MOST_LATER = 100
"""Maximum items of a conversation whose records are kept. Each response reads them as if they were new."""


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
        ids = len(self.call_ids) + len(self.item_ids) + len(self.function_calls)
        return ENTRY_BYTES + 4 * self.size + MESSAGE_BYTES * len(self.messages) + ID_BYTES * ids


@dataclass(frozen=True, slots=True)
class ItemsVersion:
    """The `version` of a conversation's items when a lease was acquired, under which they were read."""

    version: str
    lease_id: str


@dataclass(frozen=True, slots=True)
class CachedConversation:
    """A conversation's items: the first ones as the link that they add, and the records of `later` ones.

    The items after `link` can be read without those before, unless they begin with a part of an answer.
    """

    link: CachedLink
    keys: tuple[str, ...] = ()
    """The sort keys of the items in `link`, oldest first."""

    later: Mapping[str, Item] = field(default_factory=dict)
    """Records by their sort keys."""

    until: str | None = None
    """The key of the item that replaces all before it, with which this begins; None if it begins with the first one."""

    last_lease: str | None = None
    """The lease of the process's last response in it whose items are stored."""

    alone: bool = True
    """Whether no other process had the lease before the process's last response, as far as is known."""

    version: ItemsVersion | None = None
    """The version in which these, with those of the response that read them under its lease, were all items; None if
    that is not known. Whoever else adds records removes it: they may have been deleted since they were written."""

    @property
    def listed(self) -> tuple[str, ...]:
        """Return the sort keys of all its items, oldest first."""
        return tuple(sorted({*self.keys, *self.later}))

    def with_items(self, records: Sequence[Item]) -> "CachedConversation":
        """Return the conversation with records after `link`, without those that cannot be kept."""
        inline = inline_records(records)
        version = self.version if len(inline) == len(records) else None
        return replace(self, later={**self.later, **inline}, version=version)

    @property
    def count(self) -> int:
        """Return the number of its items."""
        return len(self.keys) + len(self.later)

    @property
    def memory(self) -> int:
        """Estimate the bytes that it takes."""
        records = sum(memory_of(*record.values()) for record in self.later.values())
        return self.link.memory + records + ITEM_BYTES * self.count


def inline_records(records: Iterable[Item]) -> dict[str, Item]:
    """Return the records that can be read without an object in S3, which may be deleted, by their sort keys."""
    return {record["sk"]: record for record in records if "doc" in record or "brief" in record}


class LinkCache:
    """The ended links and the conversations that a process has read, the least recently used of which are dropped.

    Nothing in it is current by itself: a caller checks what was deleted or added. Tenants, threads and event
    loops share it. Of a response that has not ended, it has only the id of the previous one.
    """

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self.max_bytes = max_bytes
        self._lock = Lock()
        self._entries: OrderedDict[tuple[str, str], tuple[Entry, int]] = OrderedDict()
        self.bytes = 0

    def get(self, tenant: str, response_id: str) -> CachedLink | None:
        found = self._use(tenant, response_id)
        return found if isinstance(found, CachedLink) else None

    def previous_of(self, tenant: str, response_id: str) -> str | None:
        """Return the id of the response that one continues, or None if there is none or it is not known."""
        found = self._use(tenant, response_id)
        if isinstance(found, CachedLink):
            return found.previous
        return found if isinstance(found, str) else None

    def get_conversation(self, tenant: str, conversation_id: str) -> CachedConversation | None:
        found = self._use(tenant, conversation_id)
        return found if isinstance(found, CachedConversation) else None

    def put(self, tenant: str, response_id: str, link: CachedLink) -> None:
        """Add an ended response."""
        self._put((tenant, response_id), link)

    def note_previous(self, tenant: str, response_id: str, previous: str) -> None:
        """Add the id that a new response continues from."""
        self._put((tenant, response_id), previous)

    def put_conversation(self, tenant: str, conversation_id: str, conversation: CachedConversation) -> None:
        """Keep a conversation in place of an older state of it."""
        if len(conversation.later) > MOST_LATER:
            self.forget(tenant, conversation_id)
        else:
            self._put((tenant, conversation_id), conversation)

    def note_items(self, tenant: str, conversation_id: str, records: Sequence[Item]) -> None:
        """Keep records that were added to a conversation, if it is known."""
        if (known := self.get_conversation(tenant, conversation_id)) is not None:
            self.put_conversation(tenant, conversation_id, replace(known.with_items(records), version=None))

    def note_response(self, tenant: str, conversation_id: str, records: Sequence[Item], lease_id: str | None) -> None:
        """Keep the records and the lease of a response that added them to a conversation, if it is known.

        Both at once: with the lease alone, the next response would not look for the items.
        """
        if (known := self.get_conversation(tenant, conversation_id)) is not None:
            known = replace(known.with_items(records), last_lease=lease_id)
            if known.version is not None and known.version.lease_id != lease_id:
                known = replace(known, version=None)
            self.put_conversation(tenant, conversation_id, known)

    def note_holder_before(self, tenant: str, conversation_id: str, lease_id: str | None) -> None:
        """Note the lease that was released before a new one, if the conversation is known. None: it is not known."""
        if (known := self.get_conversation(tenant, conversation_id)) is not None:
            alone = lease_id is not None and lease_id == known.last_lease
            self.put_conversation(tenant, conversation_id, replace(known, alone=alone))

    def forget(self, tenant: str, object_id: str) -> None:
        """Drop a response or a conversation, such as one that was deleted."""
        with self._lock:
            self._remove((tenant, object_id))

    def _use(self, tenant: str, object_id: str) -> "Entry | None":
        key = (tenant, object_id)
        with self._lock:
            if key not in self._entries:
                return None
            self._entries.move_to_end(key)
            return self._entries[key][0]

    def _put(self, key: tuple[str, str], entry: "Entry") -> None:
        memory = NOTE_BYTES if isinstance(entry, str) else entry.memory
        with self._lock:
            self._remove(key)
            if memory > self.max_bytes:
                return
            self._entries[key] = entry, memory
            self.bytes += memory
            while self.bytes > self.max_bytes:
                self._remove(next(iter(self._entries)))

    def _remove(self, key: tuple[str, str]) -> None:
        _, memory = self._entries.pop(key, (None, 0))
        self.bytes -= memory


Entry = CachedLink | CachedConversation | str
"""A link, the id of the response before one, or a conversation."""


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
