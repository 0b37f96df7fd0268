"""The common part of all kinds of records: their states, lists in several shards, and the deletion of a partition.

Records that are marked or expired do not exist for readers.

    state      attributes    readers     new leases   ends with
    live       none          see it      allowed      a mark, or its expiry
    expired    expires_at    do not      refused      removal by DynamoDB, within some days
    marked     deleted_at    do not      refused      its removal, the last step of the deletion
    sealed     sealed_at     do not      refused      its expiry, after SEAL_SECONDS

A mark hides an object with one write, however long its deletion takes. A seal takes a key that a writer of the deleted
object may still write, for longer than that writer can live. It expires, so that a deletion leaves nothing.
"""

import time
from collections.abc import AsyncGenerator, Callable, Sequence
from heapq import merge
from itertools import islice
from typing import TypeGuard

from stint.domain.errors import NotMarkedDeleted
from stint.store import keys
from stint.store.failures import ConditionFailed
from stint.store.items import Item
from stint.store.keys import Key
from stint.store.parallel import map_concurrently
from stint.store.table import SMALL_PAGE, WRITE_BATCH, Table, take

SEAL_SECONDS = 3_600
"""Seconds for which a seal stays, longer than any function that still writes can run."""


def is_live(item: Item | None) -> TypeGuard[Item]:
    return item is not None and "deleted_at" not in item and not is_expired(item)


def is_expired(item: Item) -> bool:
    return "expires_at" in item and int(item["expires_at"]) <= time.time()


def expiry(expires_at: int | None) -> Item:
    """Return the attribute of a record that expires, by which DynamoDB removes it some time after."""
    return {} if expires_at is None else {"expires_at": expires_at}


async def mark_deleted(table: Table, key: Key) -> Item | None:
    """Hide a record from all reads at once, and return it; None if there is none."""
    try:
        # Marked again by a repetition. The condition keeps a write from making a record of what is gone.
        return await table.update(key, {"deleted_at": int(time.time())}, "attribute_exists(pk)")
    except ConditionFailed:
        return None


async def read_marked(table: Table, key: Key, kind: str, identifier: str) -> Item | None:
    """Return a record that is marked as deleted; None if it no longer exists.

    Raises NotMarkedDeleted if the record has no mark.
    """
    item = await table.get(key)
    if item is not None and "deleted_at" not in item:
        raise NotMarkedDeleted(kind, identifier)
    return item


def new_seal() -> Item:
    """Return the attributes of a seal, a record at the key where the writer of a deleted object would write next."""
    # Whether it expires is also how `delete_partition` knows the seals that it must leave.
    now = int(time.time())
    return {"sealed_at": now, "expires_at": now + SEAL_SECONDS}


async def query_shards(
    table: Table,
    partitions: Sequence[str],
    *,
    after: str | None,
    limit: int,
    newest_first: bool,
    model: str | None = None,
    attributes: str = "sk",
    accepts: Callable[[Item], bool] | None = None,
) -> tuple[list[str], bool]:
    """Merge the sort keys of partitions, those after `after`, and return whether more than `limit` follow.

    The partitions are read concurrently, one call each unless `model` or `accepts` hides many. `attributes` are those
    that `accepts` reads.
    """

    async def read(pk: str) -> list[str]:
        page = max(limit + 1, SMALL_PAGE if model is not None else 0)
        items = table.query(pk, after=after, model=model, newest_first=newest_first, attributes=attributes, page=page)
        accepted = (item async for item in items if accepts is None or accepts(item))
        return [item["sk"] for item in await take(accepted, limit + 1)]

    found = list(islice(merge(*await map_concurrently(read, partitions), reverse=newest_first), limit + 1))
    return found[:limit], len(found) > limit


async def delete_partition(table: Table, pk: str, *, spare: Sequence[str] = ()) -> AsyncGenerator[None, None]:
    """Delete the records of a partition, except seals that expire and those with the sort keys `spare`.

    Yield after each batch.
    """

    def is_doomed(item: Item) -> bool:
        return not ("sealed_at" in item and "expires_at" in item) and item["sk"] not in spare

    # Seals of earlier releases have no expiry: nothing else would delete them.
    items = table.query(pk, attributes="sk, sealed_at, expires_at")
    doomed = (keys.Key(pk, item["sk"]) async for item in items if is_doomed(item))
    while batch := await take(doomed, WRITE_BATCH):
        await table.delete_many(batch)
        yield
