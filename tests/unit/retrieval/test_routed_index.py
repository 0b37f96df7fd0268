"""Two indexes, of which a store names one."""

import pytest
from tests.services.knowledge.list_index import ListIndex

from stint.domain.errors import NotFound, StoreUnavailable
from stint.retrieval.port import Entry, IndexQuery
from stint.retrieval.routed import RoutedIndex

ASKED = IndexQuery(k=5, mode="vector", vector=[1.0, 0.0])


def entry(key: str) -> Entry:
    return Entry(key=key, vector=[1.0, 0.0], text="t", document="d", generation="g", attributes={}, metadata={})


async def test_chunks_are_written_and_found_in_the_index_that_the_name_begins_with() -> None:
    first, second = ListIndex(), ListIndex()
    routed = RoutedIndex({"packed": first, "s3-vectors": second}, "packed")
    for name in ("vs-a", "s3-vectors/vs-b"):
        await routed.create(name, 2)
        await routed.upsert(name, [entry(name)])

    assert [list(each.indexes) for each in (first, second)] == [["vs-a"], ["vs-b"]]
    assert [hit.key for hit in await routed.query("s3-vectors/vs-b", ASKED)] == ["s3-vectors/vs-b"]
    with pytest.raises(NotFound):
        await routed.query("vs-b", ASKED)
    with pytest.raises(StoreUnavailable, match="'faiss', which is not configured"):
        await routed.query("faiss/vs-b", ASKED)


async def test_chunks_are_changed_and_deleted_without_the_name_of_their_index() -> None:
    first, second = ListIndex(), ListIndex()
    routed = RoutedIndex({"packed": first, "s3-vectors": second}, "packed")
    await routed.create("s3-vectors/vs-b", 2)
    await routed.upsert("s3-vectors/vs-b", [entry("one"), entry("two")])

    await routed.update_attributes("vs-b", ["one"], {"a": 1})
    await routed.delete("vs-b", ["two"])
    [left] = second.indexes["vs-b"][1].values()
    await routed.drop("vs-b")

    assert (left.key, left.attributes) == ("one", {"a": 1})
    assert second.indexes == {}


async def test_chunks_are_read_from_the_index_that_the_name_begins_with() -> None:
    first, second = ListIndex(), ListIndex()
    routed = RoutedIndex({"packed": first, "s3-vectors": second}, "packed")
    await routed.create("s3-vectors/vs-b", 2)
    await routed.upsert("s3-vectors/vs-b", [entry("one")])

    assert list(await routed.get("s3-vectors/vs-b", ["one", "two"])) == ["one"]
    assert first.calls == {}
