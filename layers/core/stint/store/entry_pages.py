"""Pages of the list entries of a partition, by their place or by a text in their names.

The entries of a name are found by reading all of them, because a partition has no order but that of its keys. Those of
metadata have an index (`stint.store.metadata_index`), in which a filter with several pairs looks for them. So one
request reads SEARCHED entries at most, and then returns what it has found with its `position`, after which the next
request goes on. A page may therefore have fewer entries than its limit, or none, while others follow.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from stint.domain.paging import MAX_ENTRIES, Window
from stint.store.items import Item
from stint.store.records import is_live
from stint.store.table import Table

SEARCHED = 5_000
"""Maximum entries that a request reads to find names: 1 to 5 MB, because an entry has less than 1 KB."""

SEARCHED_PER_CALL = 500
"""Maximum entries of one call, so that a name that is found at once does not cost 1 MB."""


class Entries(NamedTuple):
    """List entries in the requested order. `more`: others may follow, after the sort key `position`."""

    items: Sequence[Item]
    more: bool
    position: str | None

    def cut(self, count: int) -> "Entries":
        """Return the first entries, of which there is one at least unless there are none."""
        if count >= len(self.items):
            return self
        return Entries(self.items[:count], more=True, position=self.items[count - 1]["sk"] if count else None)


class EntrySource(Protocol):
    """Reads list entries in the order of a window.

    `position` is the sort key of the last one that was looked at, and `more` whether there may be others.
    """

    position: str | None
    more: bool

    @property
    def exhausted(self) -> bool: ...

    async def take(self, count: int) -> list[Item]: ...


class EntrySearch:
    """Reads the live entries of a partition in the order of a window, with its name if it has one.

    `position` is the sort key of the last entry that was looked at, and `more` whether there may be others.
    """

    def __init__(self, table: Table, pk: str, window: Window) -> None:
        self.position = window.after
        self.more = True
        self._name = (window.name or "").casefold()
        self._left = SEARCHED
        self._read = table.query(pk, after=window.after, newest_first=window.newest_first, page=SEARCHED_PER_CALL)
        self._next: Item | None = None

    async def take(self, count: int) -> list[Item]:
        """Return the next entries, at most `count`."""
        found: list[Item] = []
        while self.more and len(found) < count:
            item = self._next or await anext(self._read, None)
            self._next = None
            if item is None:
                self.more = False
                break
            self._left -= 1
            self.position = item["sk"]
            if is_live(item) and self._name in name_of_entry(item).casefold():
                found.append(item)
            if not self._left:
                return found
        if self.more and self._next is None:
            self._next = await anext(self._read, None)
            self.more = self._next is not None
        return found

    @property
    def exhausted(self) -> bool:
        """Return whether no more may be read, because there is nothing, or for this request."""
        return not self.more or not self._left


def name_of_entry(item: Item) -> str:
    """Return the name in a list entry, or the beginning of a long one."""
    return str(item.get("name") or item.get("name_start") or "")


async def list_entries(table: Table, pk: str, window: Window, search: EntrySource | None = None) -> Entries:
    """Return the live entries of a partition in a window, or those that another search finds."""
    if window.name is None and search is None:
        items, more = await table.live_page(pk, window)
        return Entries(items, more, items[-1]["sk"] if items else window.after)
    search = search or EntrySearch(table, pk, window)
    found = await search.take(MAX_ENTRIES if window.limit is None else window.limit)
    return Entries(found, search.more, search.position)
