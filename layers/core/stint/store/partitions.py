"""What is done with whole partitions: lists that are spread over several, and emptying one."""

from collections.abc import Iterator, Sequence
from heapq import merge
from itertools import islice

from stint.store import keys
from stint.store.items import Item
from stint.store.parallel import side_by_side
from stint.store.table import SMALL_PAGE, WRITE_BATCH, Table


def read_spread(
    table: Table,
    partitions: Sequence[str],
    *,
    after: str | None,
    limit: int,
    newest_first: bool,
    model: str | None = None,
) -> tuple[list[str], bool]:
    """Merge the sort keys of partitions, from behind `after` on, and tell whether more than `limit` follow.

    The partitions are read side by side, one call each unless `model` hides many.
    """

    def read(pk: str) -> list[str]:
        page = max(limit + 1, SMALL_PAGE if model is not None else 0)
        items = table.query(pk, after=after, model=model, newest_first=newest_first, attributes="sk", page=page)
        return [item["sk"] for item in islice(items, limit + 1)]

    found = list(islice(merge(*side_by_side(read, partitions), reverse=newest_first), limit + 1))
    return found[:limit], len(found) > limit


def empty(table: Table, pk: str, *, spare: str) -> Iterator[None]:
    """Delete what a partition holds but seals and the record `spare`, a batch per step."""

    def is_doomed(item: Item) -> bool:
        return "sealed_at" not in item and item["sk"] != spare

    items = table.query(pk, attributes="sk, sealed_at")
    doomed = (keys.Key(pk, item["sk"]) for item in items if is_doomed(item))
    while batch := list(islice(doomed, WRITE_BATCH)):
        table.delete_many(batch)
        yield
