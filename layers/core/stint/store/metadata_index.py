"""The index of metadata: an entry for each pair of a session or an agent, by which lists find what has it.

The entries of a pair are in one partition, in the order of creation, so a page of a list with one pair is one Query.
Keys have only hashes of pairs, because keys and values are texts of callers. Each entry has the hashes of all pairs of
its object, so that a filter with several pairs reads the entries of one of them, and compares.

An entry is written, replaced and removed in the same transaction as what it describes. So the index is never behind: a
process that dies leaves both or none, and of two changes at the same time one is refused, and is made again.

    written with                            by                                removed by
    the record of a session                 its creation                      a deletion, before the record
    the settings of a session               each change of its metadata       the same change, if the pair is gone
    the list entry of an agent              its creation, and each change     a deletion, or the change

An agent that only one session has is in no list, so it has no entries. Expiring objects have entries that expire.

A search reads a part of the entries of each pair at first, and goes on with the pair whose entries are the fewest for
the same time. It looks at SEARCHED entries at most, and returns what it has found with its `position`, after which the
next request goes on.

docs/decisions.md, entry 150, has the reasons.
"""

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Literal, NamedTuple

from stint.domain.paging import MAX_ENTRIES, Window
from stint.store import keys
from stint.store.entry_pages import SEARCHED, SEARCHED_PER_CALL, name_of_entry
from stint.store.items import Item
from stint.store.keys import Key
from stint.store.parallel import map_concurrently
from stint.store.records import is_live
from stint.store.session_index import ListedSession
from stint.store.table import GET_BATCH, Table, take

if TYPE_CHECKING:
    from stint.store.transactions import Delete, Put

HASH_BYTES = 16
"""Bytes of the hash of a pair, as in its key."""

SAMPLE = 100
"""Entries of each pair that are read at first if a filter has several: 4 to 14 read units each."""

IndexedKind = Literal["session", "agent"]


class FoundSessions(NamedTuple):
    """Sessions in the requested order. `more`: others may follow, after the id `position`."""

    sessions: list[ListedSession]
    more: bool
    position: str | None


def hash_pair(key: str, value: str) -> bytes:
    return sha256(json.dumps([key, value]).encode()).digest()[:HASH_BYTES]


def hash_pairs(metadata: Mapping[str, str]) -> bytes:
    """Return the hashes of pairs in one text of bytes, as records have them."""
    return b"".join(sorted(hash_pair(key, value) for key, value in metadata.items()))


def split_pairs(pairs: bytes) -> list[bytes]:
    return [pairs[at : at + HASH_BYTES] for at in range(0, len(pairs), HASH_BYTES)]


def entry_keys(tenant: str, kind: IndexedKind, identifier: str, pairs: Sequence[bytes]) -> list[Key]:
    """Return the keys of the entries of an object."""
    key_of = keys.session_pair if kind == "session" else keys.agent_pair
    return [key_of(tenant, pair.hex(), identifier) for pair in pairs]


def index_writes(
    tenant: str, kind: IndexedKind, identifier: str, pairs: bytes, attributes: Item, *, before: bytes = b""
) -> "list[Put | Delete]":
    """Return the writes of a transaction that gives an object `pairs` in place of those that it had before.

    `attributes` are those of the object that an entry has, too. Two units for each pair of both.
    """
    from stint.store.transactions import Delete, Put  # noqa: PLC0415 - with the transaction

    own = attributes | {"pairs": pairs}
    written = entry_keys(tenant, kind, identifier, split_pairs(pairs))
    gone = set(entry_keys(tenant, kind, identifier, split_pairs(before))) - set(written)
    return [*[Put(key._asdict() | own, condition="") for key in written], *[Delete(key) for key in sorted(gone)]]


async def remove_entries(table: Table, tenant: str, kind: IndexedKind, identifier: str, pairs: bytes) -> None:
    """Delete the entries of a marked object: a unit each, in one call."""
    await table.delete_many(entry_keys(tenant, kind, identifier, split_pairs(pairs)))


class MetadataSearch:
    """Reads the entries that have all pairs of a window's metadata, in its order.

    `position` is the last entry that was returned or looked at, and `more` whether there may be others after it.
    """

    def __init__(
        self, table: Table, tenant: str, kind: IndexedKind, window: Window, *, agent_id: str | None = None
    ) -> None:
        self.position = window.after
        self.more = True
        self._table, self._window, self._agent_id = table, window, agent_id
        self._wanted = split_pairs(hash_pairs(window.metadata or {}))
        partition = keys.session_pairs if kind == "session" else keys.agent_pairs
        self._partitions = [partition(tenant, pair.hex()) for pair in self._wanted]
        self._left = SEARCHED
        self._read: AsyncGenerator[Item, None] | None = None
        self._next: Item | None = None

    @property
    def exhausted(self) -> bool:
        """Return whether no more may be read, because there is nothing, or for this request."""
        return not self.more or (not self._left and self._next is None)

    async def find(self, count: int) -> list[Item]:
        """Return the next entries of the index, at most `count`."""
        found: list[Item] = []
        while len(found) < count and (item := await self._match()) is not None:
            found.append(item)
            self.position = item["sk"]
        if self.more:
            # One more than returned, which tells whether others follow.
            self._next = await self._match()
        return found

    async def _match(self) -> Item | None:
        """Return the next entry with all pairs; None if there is none, or none that this request may read."""
        item, self._next = self._next, None
        if self._read is None:
            self._read = await self._choose()
        while item is None and self._left and self.more:
            read = await anext(self._read, None)
            self.more = read is not None
            if read is not None:
                self._left -= 1
                if self._is_match(read):
                    item = read
                elif not self._left:
                    self.position = read["sk"]
        return item

    def _is_match(self, item: Item) -> bool:
        if not is_live(item) or (self._agent_id is not None and item["agent_id"] != self._agent_id):
            return False
        return {*self._wanted} <= {*split_pairs(item["pairs"])}

    async def _choose(self) -> AsyncGenerator[Item, None]:
        """Return the entries of the pair that has the fewest, by a sample of each."""
        after, count = self._window.after, max(SAMPLE, min(self._window.limit or 0, SEARCHED_PER_CALL) + 1)

        async def read(partition: str) -> list[Item]:
            return await take(self._query(partition, after, count), count)

        samples = await map_concurrently(read, self._partitions)
        whole = [sample for sample in samples if len(sample) < count]
        if whole:
            return self._continue(min(whole, key=len), None)
        # The same number of entries, over the longest time.
        farthest = min if self._window.newest_first else max
        chosen = farthest(samples, key=lambda sample: str(sample[-1]["sk"]))
        return self._continue(chosen, self._partitions[samples.index(chosen)])

    async def _continue(self, sample: Sequence[Item], partition: str | None) -> AsyncGenerator[Item, None]:
        """Yield the entries of a sample, and those that follow in its partition."""
        for item in sample:
            yield item
        if partition is not None:
            async for item in self._query(partition, sample[-1]["sk"], SEARCHED_PER_CALL):
                yield item

    def _query(self, partition: str, after: str | None, page: int) -> AsyncGenerator[Item, None]:
        return self._table.query(partition, after=after, newest_first=self._window.newest_first, page=page)


class ListedSearch(MetadataSearch):
    """Reads the list entries of a search's objects, also by a text in their names, in the way of `EntrySearch`."""

    def __init__(self, table: Table, tenant: str, window: Window, *, agent_id: str | None = None) -> None:
        super().__init__(table, tenant, "session" if agent_id else "agent", window, agent_id=agent_id)
        self._key_of = partial(keys.session, tenant, agent_id) if agent_id else partial(keys.agent, tenant)
        self._name = (window.name or "").casefold()

    async def take(self, count: int) -> list[Item]:
        """Return the next list entries, at most `count`."""
        found: list[Item] = []
        while len(found) < count and not self.exhausted:
            listed = [self._key_of(item["sk"]) for item in await self.find(min(count - len(found), GET_BATCH))]
            entries = await self._table.get_many(listed)
            live = [entry for key in listed if is_live(entry := entries.get(key))]
            found += [entry for entry in live if self._name in name_of_entry(entry).casefold()]
        return found


class MetadataIndex:
    """Finds the sessions of tenants by their metadata."""

    def __init__(self, table: Table) -> None:
        self._table = table

    async def find_sessions(self, tenant: str, window: Window, agent_id: str | None = None) -> FoundSessions:
        """Return sessions of all agents, or of one, that have the metadata of a window. Some may be deleted by now.

        Raises NotFound if `after` is not the id of a session, which need not exist.
        """
        if window.after is not None:
            keys.listed_session(tenant, window.after)  # refuses an invalid id
        search = MetadataSearch(self._table, tenant, "session", window, agent_id=agent_id)
        found = await search.find(MAX_ENTRIES if window.limit is None else window.limit)
        sessions = [ListedSession(each["agent_id"], each["sk"]) for each in found]
        return FoundSessions(sessions, search.more, search.position)
