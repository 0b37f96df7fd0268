"""Changes that callers make to a conversation's items, which the conversation's own record shows.

A response adds its items under the conversation's lease. Callers add and delete items at any time, without the lease.
So that a response need not list the items to know that they are those that its process remembers, each change by a
caller is announced in the conversation's record before the first item is written, and completed after the last one:

    record                              meaning for a holder of the lease
    `items_version` is X, and nothing   the items are those that a list had under a lease with version X, and those that
    is announced                        responses have added since
    a change is announced               items may be written at this moment, so only a list has them
    an announced change has ended       its writer died, and has written some items or none: the version is another one

A version is a count of completions. A write that arrives twice, however late, makes it a higher one, or announces a
change until it ends; it never brings an earlier version back, which would hide the changes since. A change stays
announced for longer than any function runs. An earlier release announces nothing, so versions count only with the key
layout `spread`, with which no function of an earlier release writes.
"""

import secrets
import time

from stint.dataclasses import dataclass
from stint.domain.errors import NotFound
from stint.store import keys
from stint.store.failures import ConditionFailed
from stint.store.items import Item
from stint.store.keys import Key
from stint.store.table import LIVE, Table

CHANGE_SECONDS = 1_800
"""Seconds for which a change stays announced, twice the time that a function can run (AWS Lambda, "Quotas")."""

ANNOUNCED = "change_"
"""The prefix of the attributes that announce a change. The value is the end, in seconds since 1970."""

MOST_REMOVED = 100
"""Maximum ended changes that a completion removes: an expression has up to 4 KB (DynamoDB, "Quotas")."""


@dataclass(frozen=True, slots=True)
class ItemChange:
    """A change of a conversation's items that is announced in its record. `record` is how it was then."""

    table: Table
    key: Key
    name: str
    record: Item

    async def complete(self) -> Item:
        """Show that all items of the change are written, for one unit, and return the conversation's record.

        Raises ConditionFailed if the conversation was deleted or has expired.
        """
        # Changes of writers that died: whoever has a list from before does not have this version.
        done = dict.fromkeys([self.name, *ended_changes(self.record)[:MOST_REMOVED]])
        return await self.table.update(self.key, done, LIVE_RECORD, {":now": int(time.time())}, count="items_version")


LIVE_RECORD = f"attribute_exists(pk) AND {LIVE}"


async def announce_change(table: Table, tenant: str, conversation_id: str) -> ItemChange:
    """Announce a change of a conversation's items, for one unit. Raises NotFound."""
    key, name, now = keys.conversation(tenant, conversation_id), ANNOUNCED + secrets.token_hex(6), int(time.time())
    try:
        record = await table.update(key, {name: now + CHANGE_SECONDS}, LIVE_RECORD, {":now": now})
    except ConditionFailed:
        raise NotFound("Conversation", conversation_id) from None
    return ItemChange(table, key, name, record)


def version_of(record: Item) -> str | None:
    """Return the version of a conversation's items, empty before the first change; None while one is announced."""
    ended = ended_changes(record)
    if sum(name.startswith(ANNOUNCED) for name in record) > len(ended):
        return None
    return " ".join([str(record.get("items_version", "")), *ended])


def ended_changes(record: Item) -> list[str]:
    """Return the attributes of the changes that were never completed, in the order of their names."""
    now = time.time()
    return sorted(name for name, until in record.items() if name.startswith(ANNOUNCED) and int(until) <= now)
