"""Which records count: neither marked for deletion nor expired, whatever DynamoDB has removed yet."""

import time
from typing import TypeGuard

from stint.domain.errors import NotMarkedDeleted
from stint.store.failures import ConditionFailed
from stint.store.items import Item
from stint.store.keys import Key
from stint.store.table import Table

SEAL_SECONDS = 3_600
"""How long the seal of something deleted stays: longer than any function that still writes to it can run."""


def is_live(item: Item | None) -> TypeGuard[Item]:
    return item is not None and "deleted_at" not in item and not is_expired(item)


def is_expired(item: Item) -> bool:
    return "expires_at" in item and int(item["expires_at"]) <= time.time()


def mark_deleted(table: Table, key: Key) -> Item | None:
    """Hide a record from every read at once and give it as it was left; None when there is none."""
    try:
        return table.update(key, {"deleted_at": int(time.time())}, "attribute_exists(pk)")
    except ConditionFailed:
        return None


def read_marked(table: Table, key: Key, kind: str, identifier: str) -> Item | None:
    """Return a record that is marked as deleted; None when it is gone.

    Raise NotMarkedDeleted when the record has no mark.
    """
    item = table.get(key)
    if item is not None and "deleted_at" not in item:
        raise NotMarkedDeleted(kind, identifier)
    return item


def new_seal() -> Item:
    """Make the attributes of a record that stands where a writer of something deleted may write next."""
    now = int(time.time())
    return {"sealed_at": now, "expires_at": now + SEAL_SECONDS}
