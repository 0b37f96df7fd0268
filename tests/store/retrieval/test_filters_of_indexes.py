"""Filters of attributes, which have the same meaning on each adapter."""

from typing import Any

import pytest
from pydantic import TypeAdapter
from tests.store.retrieval.entries import about, both, entry, keys, near

from stint.domain.filters import Filter, NewFilter
from stint.retrieval.port import VectorIndex

FILTER: TypeAdapter[Filter] = TypeAdapter(NewFilter)
CHUNKS = {
    "a": {"year": 2022, "author": "Ada", "draft": False},
    "b": {"year": 2023.5, "author": "Bob", "draft": True},
    "c": {"year": 2024, "author": "Cleo"},
    "d": {"year": "2024", "author": "Dora", "draft": 1},
    "e": {},
}


def compare(kind: str, key: str, value: object) -> dict[str, Any]:
    return {"type": kind, "key": key, "value": value}


FOUND = [
    (compare("eq", "author", "Ada"), "a"),
    (compare("eq", "year", 2024), "c"),
    (compare("eq", "year", 2024.0), "c"),
    (compare("eq", "year", "2024"), "d"),
    (compare("eq", "draft", True), "b"),
    (compare("eq", "draft", 1), "d"),
    (compare("eq", "draft", False), "a"),
    (compare("ne", "author", "Ada"), "bcd"),
    (compare("ne", "draft", True), "a"),
    (compare("ne", "missing", 1), ""),
    (compare("gt", "year", 2022), "bc"),
    (compare("gte", "year", 2022), "abc"),
    (compare("lt", "year", 2023.5), "a"),
    (compare("lte", "year", 2023.5), "ab"),
    (compare("gt", "author", "Bob"), "cd"),
    (compare("lte", "author", "Bob"), "ab"),
    (compare("gte", "draft", False), "ab"),
    (compare("in", "author", ["Ada", "Cleo", "Zoe"]), "ac"),
    (compare("in", "year", [2024, "2024"]), "cd"),
    (compare("in", "draft", [1]), "d"),
    (compare("in", "author", []), ""),
    (compare("nin", "author", ["Ada", "Cleo"]), "bd"),
    (compare("nin", "year", [2024]), "abd"),
    (compare("nin", "author", []), "abcd"),
    ({"type": "and", "filters": [compare("gt", "year", 2022), compare("lt", "author", "Cleo")]}, "b"),
    ({"type": "or", "filters": [compare("eq", "author", "Ada"), compare("gt", "author", "Cleo")]}, "ad"),
    (
        {
            "type": "or",
            "filters": [
                {"type": "and", "filters": [compare("ne", "author", "Ada"), compare("lt", "year", 2024)]},
                compare("in", "author", ["Dora"]),
            ],
        },
        "bd",
    ),
    ({"type": "and", "filters": []}, "abcde"),
    ({"type": "or", "filters": []}, ""),
]


@pytest.fixture
async def filled(index: VectorIndex, name: str) -> VectorIndex:
    await index.create(name, 2)
    attributes: dict[str, Any] = CHUNKS
    await index.upsert(name, [entry(key, (1, 0), f"word {key}", each) for key, each in attributes.items()])
    return index


async def test_each_filter_lets_the_same_chunks_through_in_each_mode(filled: VectorIndex, name: str) -> None:
    for given, expected in FOUND:
        condition = FILTER.validate_python(given)
        for query in (near((1, 0), 10, condition), about("word", 10, condition), both((1, 0), "word", 10, condition)):
            assert "".join(keys(await filled.query(name, query))) == expected, (given, query.mode)


async def test_a_filter_is_applied_before_the_best_are_taken(index: VectorIndex, name: str) -> None:
    entries = [entry(f"{at:03}", (1, at / 100), "word", {"by": f"author {at:03}", "n": at}) for at in range(300)]
    await index.create(name, 2)
    await index.upsert(name, entries)

    for given in (compare("gte", "by", "author 297"), compare("gte", "n", 297)):
        condition = FILTER.validate_python(given)
        assert keys(await index.query(name, near((1, 0), 2, condition))) == ["297", "298"]
        assert keys(await index.query(name, about("word", 2, condition))) == ["297", "298"]


async def test_attributes_that_are_too_large_for_the_index_are_filtered_too(index: VectorIndex, name: str) -> None:
    wide: dict[str, Any] = {f"k{at}": f"{'é' * 500}{at}" for at in range(16)}
    await index.create(name, 2)
    await index.upsert(name, [entry("wide", (1, 0), "word", wide), entry("small", (1, 1), "word", {"k3": "x"})])

    for given, expected in (
        (compare("eq", "k3", f"{'é' * 500}3"), ["wide"]),
        (compare("ne", "k3", f"{'é' * 500}3"), ["small"]),
        (compare("in", "k3", ["x", f"{'é' * 500}3"]), ["wide", "small"]),
        (compare("nin", "k3", ["x"]), ["wide"]),
        (compare("eq", "k15", "x"), []),
    ):
        condition = FILTER.validate_python(given)
        assert keys(await index.query(name, near((1, 0), 10, condition))) == expected, given


@pytest.mark.parametrize("key", ["$eq", "a.b", "", "with space", "ключ", "document", "text", "k" * 64])
async def test_any_key_may_be_filtered(index: VectorIndex, name: str, key: str) -> None:
    await index.create(name, 2)
    await index.upsert(name, [entry("a", (1, 0), "word", {key: "x"}), entry("b", (1, 0), "word", {key: "y"})])

    hits = await index.query(name, near((1, 0), 10, FILTER.validate_python(compare("eq", key, "x"))))

    assert [(hit.key, hit.attributes) for hit in hits] == [("a", {key: "x"})]
