"""Operations on whole partitions: lists in several shards, and deletion."""

from collections.abc import AsyncGenerator, Callable, Sequence
from heapq import merge
from itertools import islice

from stint.store import keys
from stint.store.items import Item
from stint.store.parallel import map_concurrently
from stint.store.table import SMALL_PAGE, WRITE_BATCH, Table, take


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
