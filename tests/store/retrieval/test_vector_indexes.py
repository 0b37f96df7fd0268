"""The contract of VectorIndex, which each adapter keeps."""

import math
from collections.abc import Sequence
from dataclasses import replace

import bm25s
import pytest
from tests.store.retrieval.entries import about, both, entry, keys, near, scores

from stint.domain.errors import Conflict, InvalidRequest, NotFound
from stint.domain.filters import Attributes, ComparisonFilter
from stint.domain.retrieval import WeightedRanker
from stint.retrieval.port import Entry, VectorIndex


async def filled(index: VectorIndex, name: str, entries: Sequence[Entry], dimension: int = 3) -> VectorIndex:
    await index.create(name, dimension)
    await index.upsert(name, entries)
    return index


def equal(key: str, value: int) -> ComparisonFilter:
    return ComparisonFilter(type="eq", key=key, value=value)


async def test_the_nearest_vectors_are_found_best_first_with_their_cosine(index: VectorIndex, name: str) -> None:
    await filled(index, name, [entry("a", (1, 0, 0)), entry("b", (3, 3, 0)), entry("c", (-2, 0, 0))])

    hits = await index.query(name, near((2, 0, 0)))

    assert keys(hits) == ["a", "b", "c"]
    assert [hit.score for hit in hits] == pytest.approx([1, math.sqrt(0.5), -1], abs=1e-5)


async def test_all_that_was_stored_with_a_chunk_is_returned(index: VectorIndex, name: str) -> None:
    metadata = {"document_id": "d", "nested": {"list": [1, None, "é"]}, "empty": ""}
    stored = Entry(
        "k", (1, 2, 3), "naïve 日本\n text \x00 🙂", "file-1", "g7", {"year": 2024, "ok": True, "by": "x"}, metadata
    )
    await filled(index, name, [stored])

    for query in (near((1, 2, 3)), about("naïve"), both((1, 2, 3), "naïve")):
        (hit,) = await index.query(name, query)
        assert (hit.key, hit.text, hit.document, hit.generation) == ("k", stored.text, "file-1", "g7")
        assert hit.attributes == {"year": 2024, "ok": True, "by": "x"}
        assert hit.attributes["ok"] is True
        assert hit.metadata == metadata


async def test_words_are_weighed_over_the_whole_store_as_bm25s_does(index: VectorIndex, name: str) -> None:
    texts = ["red fish blue fish", "one fish", "a green boat on a blue sea", "boats", "red", "blue blue sea"]
    await index.create(name, 3)
    for at, text in enumerate(texts):  # each in a write of its own
        await index.upsert(name, [entry(f"{at}", (1, at, 0), text)])

    hits = await index.query(name, about("Blue FISH, fish?"))

    reference = bm25s.BM25(method="lucene")
    reference.index([text.split() for text in texts], show_progress=False)
    expected = {f"{at}": score for at, score in enumerate(reference.get_scores(["blue", "fish"])) if score > 0}
    assert scores(hits) == pytest.approx(expected, rel=1e-4)
    assert keys(hits) == sorted(expected, key=lambda key: -expected[key])


async def test_only_texts_with_a_word_of_the_query_are_found_by_keyword(index: VectorIndex, name: str) -> None:
    await filled(index, name, [entry("a", text="one two"), entry("b", text="three")])

    assert keys(await index.query(name, about("two or more"))) == ["a"]
    assert await index.query(name, about("nothing here")) == []
    assert await index.query(name, about("")) == []
    assert await index.query(name, about("?! ...")) == []


async def test_a_hybrid_search_adds_reciprocal_ranks(index: VectorIndex, name: str) -> None:
    entries = [
        entry("a", (1, 0, 0), "sun"),
        entry("b", (1, 1, 0), "moon moon"),
        entry("c", (0, 1, 0), "moon star dust"),
    ]
    await filled(index, name, entries)

    hits = await index.query(name, both((1, 0, 0), "moon"))

    expected = {"a": 1 / 61, "b": 1 / 62 + 1 / 61, "c": 1 / 63 + 1 / 62}
    assert scores(hits) == pytest.approx(expected, abs=1e-6)
    assert keys(hits) == ["b", "c", "a"]


@pytest.mark.parametrize(("alpha", "order"), [(1.0, ["a", "b", "c"]), (0.0, ["b", "a", "c"]), (0.9, ["a", "b", "c"])])
async def test_a_weighted_hybrid_search_weighs_the_vector_score_with_alpha(
    index: VectorIndex, name: str, alpha: float, order: list[str]
) -> None:
    entries = [
        entry("a", (1, 0, 0), "sun"),
        entry("b", (1, 1, 0), "moon moon"),
        entry("c", (0, 1, 0), "moon star dust"),
    ]
    await filled(index, name, entries)

    hits = await index.query(name, both((1, 0, 0), "moon", ranker=WeightedRanker(alpha=alpha)))

    near_b = math.sqrt(0.5)  # in 0..1 already, since the best is 1 and the worst is 0
    expected = {"a": alpha, "b": alpha * near_b + (1 - alpha), "c": 0.0}
    assert scores(hits) == pytest.approx(expected, abs=1e-4)
    assert keys(hits) == order


async def test_a_hybrid_search_takes_k_of_each_side(index: VectorIndex, name: str) -> None:
    entries = [entry(f"v{at}", (1, at / 10, 0), "nothing") for at in range(4)]
    entries += [entry(f"w{at}", (0, 0, 1), "word" + " more" * at) for at in range(4)]
    await filled(index, name, entries)

    hits = await index.query(name, both((1, 0, 0), "word", k=2))

    assert keys(hits) == ["v0", "w0"]
    assert scores(hits) == pytest.approx({"v0": 1 / 61, "w0": 1 / 61}, abs=1e-6)


async def test_a_zero_vector_is_found_by_its_text_only(index: VectorIndex, name: str) -> None:
    await filled(index, name, [entry("zero", (0, 0, 0), "silence"), entry("other", (0, 1, 0), "noise")])

    assert keys(await index.query(name, near((0, 1, 0)))) == ["other"]
    (hit,) = await index.query(name, about("silence"))
    assert (hit.key, hit.attributes) == ("zero", {})
    assert keys(await index.query(name, both((0, 1, 0), "silence"))) == ["other", "zero"]


async def test_a_query_with_a_zero_vector_finds_by_text_only(index: VectorIndex, name: str) -> None:
    await filled(index, name, [entry("a", text="one"), entry("b", text="two")])

    assert await index.query(name, near((0, 0, 0))) == []
    assert keys(await index.query(name, both((0, 0, 0), "two"))) == ["b"]


async def test_equal_scores_are_in_the_order_of_keys(index: VectorIndex, name: str) -> None:
    entries = [entry(f"k{at:03}", (1, 2, 3), "same words") for at in range(40)]
    await index.create(name, 3)
    for at in (20, 0, 30, 10):
        await index.upsert(name, entries[at : at + 10][::-1])

    for query in (near((1, 2, 3), 25), about("words", 25), both((1, 2, 3), "words", 25)):
        assert keys(await index.query(name, query)) == [f"k{at:03}" for at in range(25)]


async def test_a_chunk_replaces_the_one_with_its_key(index: VectorIndex, name: str) -> None:
    await filled(index, name, [entry("a", (1, 0, 0), "old words"), entry("b", (0, 1, 0), "others")])

    await index.upsert(name, [entry("a", (0, 0, 1), "first"), entry("a", (0, 0, 1), "new", {"v": 2})])

    assert await index.query(name, about("old first")) == []
    assert keys(await index.query(name, near((0, 0, 1)))) == ["a", "b"]
    (hit,) = await index.query(name, about("new"))
    assert hit.attributes == {"v": 2}


async def test_new_attributes_replace_those_of_the_named_chunks_only(index: VectorIndex, name: str) -> None:
    first = [entry("a", (1, 2, 0), "one", {"v": 1, "old": True}, {"kept": 1}), entry("b", (0, 1, 0), "two", {"v": 1})]
    await filled(index, name, first)
    await index.upsert(name, [entry("zero", (0, 0, 0), "three", {"v": 1})])

    await index.update_attributes(name, ["a", "missing", "zero"], {"v": 2})

    (hit,) = await index.query(name, about("one"))
    assert (hit.attributes, hit.metadata, hit.document, hit.generation) == (
        {"v": 2},
        {"kept": 1},
        "document of a",
        "g1",
    )
    assert keys(await index.query(name, near((1, 2, 0), condition=equal("v", 2)))) == ["a"]
    assert keys(await index.query(name, about("one two three", condition=equal("v", 2)))) == ["a", "zero"]
    assert keys(await index.query(name, about("one two three", condition=equal("v", 1)))) == ["b"]
    assert scores(await index.query(name, near((1, 2, 0))))["a"] == pytest.approx(1, abs=1e-5)


async def test_attributes_of_many_and_of_large_chunks_are_replaced(index: VectorIndex, name: str) -> None:
    texts = ["word " * 30_000 if at < 2 else f"text {at}" for at in range(450)]
    await filled(index, name, [entry(f"{at:03}", (1, at, 0), text, {"v": 1}) for at, text in enumerate(texts)])

    for _ in range(3):
        await index.update_attributes(name, [f"{at:03}" for at in range(440)], {"v": 2, "long": "x" * 3_000})

    found = await index.query(name, near((1, 0, 0), 1_000, equal("v", 2)))
    assert [hit.text for hit in found] == texts[:440]
    assert len(await index.query(name, near((1, 0, 0), 1_000, equal("v", 1)))) == 10


async def test_deleted_chunks_have_no_attributes_to_replace(index: VectorIndex, name: str) -> None:
    await filled(index, name, [entry("a"), entry("b")])
    await index.delete(name, ["a"])

    await index.update_attributes(name, ["a"], {"v": 2})
    await index.update_attributes(name, [], {"v": 3})

    assert keys(await index.query(name, near((1, 0, 0)))) == ["b"]
    await index.drop(name)
    with pytest.raises(NotFound):
        await index.update_attributes(name, ["b"], {"v": 2})


async def test_deleted_chunks_are_not_found_and_may_come_back(index: VectorIndex, name: str) -> None:
    await filled(index, name, [entry("a", text="one"), entry("b", text="two"), entry("c", text="three")])

    await index.delete(name, ["a", "missing", "c"])

    assert keys(await index.query(name, near((1, 0, 0)))) == ["b"]
    assert await index.query(name, about("one three")) == []
    await index.delete(name, ["a"])
    await index.delete(name, [])
    await index.upsert(name, [entry("a", text="one again")])
    assert keys(await index.query(name, about("one"))) == ["a"]


async def test_more_chunks_than_a_call_may_have_are_written_and_deleted(index: VectorIndex, name: str) -> None:
    entries = [entry(f"{at:04}", (1, at, 0), f"text {at}") for at in range(1_100)]
    await filled(index, name, entries)

    assert keys(await index.query(name, near((1, 0, 0), 1_100))) == [each.key for each in entries]
    await index.delete(name, [each.key for each in entries[1:]])
    assert keys(await index.query(name, near((1, 0, 0), 1_100))) == ["0000"]
    assert keys(await index.query(name, about("text 0 77"))) == ["0000"]


async def test_an_index_is_created_once_with_its_dimension(index: VectorIndex, name: str) -> None:
    await filled(index, name, [entry("a")])

    await index.create(name, 3)

    assert keys(await index.query(name, near((1, 0, 0)))) == ["a"]
    with pytest.raises(Conflict, match="has dimension 3, not 4"):
        await index.create(name, 4)


async def test_a_dropped_index_is_unknown_until_it_is_created_again(index: VectorIndex, name: str) -> None:
    await filled(index, name, [entry("a"), entry("b")])

    await index.drop(name)
    await index.drop(name)

    for call in (index.query(name, near((1, 0, 0))), index.upsert(name, [entry("c")]), index.delete(name, ["a"])):
        with pytest.raises(NotFound):
            await call
    await index.create(name, 2)
    assert await index.query(name, near((1, 0))) == []


async def test_an_empty_index_finds_nothing(index: VectorIndex, name: str) -> None:
    await index.create(name, 3)
    await index.upsert(name, [])
    await index.delete(name, ["a"])

    for query in (near((1, 0, 0)), about("a"), both((1, 0, 0), "a")):
        assert await index.query(name, query) == []


@pytest.mark.parametrize("vector", [(1, 2), (1, 2, math.nan), (1, math.inf, 2), (1, 2, 1e39), ()])
async def test_an_invalid_vector_is_refused_and_nothing_is_written(
    index: VectorIndex, name: str, vector: tuple[float, ...]
) -> None:
    await filled(index, name, [entry("a", (1, 0, 0))])

    with pytest.raises(InvalidRequest, match="Embedding at index 1 has"):
        await index.upsert(name, [entry("b"), entry("c", vector)])
    with pytest.raises(InvalidRequest, match="The query's embedding has"):
        await index.query(name, near(vector))

    assert keys(await index.query(name, near((1, 0, 0)))) == ["a"]


@pytest.mark.parametrize("size", [1e-30, 1e-3, 1e30, 3e38])
async def test_the_length_of_a_vector_does_not_matter(index: VectorIndex, name: str, size: float) -> None:
    await filled(index, name, [entry("a", (size, size, 0)), entry("b", (0, 0, size))])

    hits = await index.query(name, near((0, size, size)))

    assert scores(hits) == pytest.approx({"a": 0.5, "b": math.sqrt(0.5)}, abs=1e-5)


async def test_a_query_without_what_its_mode_needs_is_refused(index: VectorIndex, name: str) -> None:
    await filled(index, name, [entry("a")])

    for query in (both((1, 0, 0), "a"), both((1, 0, 0), "a", mode="vector"), both((1, 0, 0), "a", mode="keyword")):
        assert await index.query(name, query)
    with pytest.raises(InvalidRequest, match="keyword needs a text"):
        await index.query(name, replace(about("a"), text=None))
    with pytest.raises(InvalidRequest, match="vector needs a vector"):
        await index.query(name, replace(near((1, 0, 0)), vector=None))


async def test_a_long_question_is_searched_by_its_beginning(index: VectorIndex, name: str) -> None:
    await filled(index, name, [entry("a", text="needle"), entry("b", text="hay")])

    assert keys(await index.query(name, about("needle " + "straw " * 2_000 + " é" * 3))) == ["a"]


async def test_words_of_a_query_after_its_first_1024_characters_find_nothing(index: VectorIndex, name: str) -> None:
    await filled(index, name, [entry("a", (1, 0, 0), "first"), entry("b", (0, 1, 0), "last")])

    assert keys(await index.query(name, about(f"first {'word ' * 1_000} last"))) == ["a"]


async def test_large_texts_metadata_and_attributes_come_back_whole(index: VectorIndex, name: str) -> None:
    attributes: Attributes = {f"key-{at:02}-{'k' * 50}": "v" * 500 + str(at) for at in range(16)}
    large = entry("large", (1, 0, 0), "word " * 30_000 + "end", attributes, {"blob": "m" * 100_000})
    await filled(index, name, [large, entry("small", (1, 1, 0), "end")])

    hits = await index.query(name, near((1, 0, 0)))

    assert keys(hits) == ["large", "small"]
    assert (hits[0].text, hits[0].attributes, hits[0].metadata) == (large.text, attributes, large.metadata)
    assert "large" in keys(await index.query(name, about("word")))
    await index.delete(name, ["large"])
    assert keys(await index.query(name, near((1, 0, 0)))) == ["small"]


async def test_chunks_are_read_by_their_keys(index: VectorIndex, name: str) -> None:
    stored = [entry(f"c:{at:03}", (1, at, 0), f"text {at}", {"n": at}, {"token_count": at}) for at in range(230)]
    await filled(index, name, stored)
    await index.upsert(name, [entry("c:007", text="newer")])
    await index.delete(name, ["c:100"])

    wanted = [f"c:{at:03}" for at in range(5, 205)]
    found = await index.get(name, [*wanted, "missing"])

    assert sorted(found) == [key for key in wanted if key != "c:100"]
    assert found["c:007"].text == "newer"
    chunk = found["c:204"]
    assert (chunk.text, chunk.document, chunk.generation, chunk.score) == ("text 204", "document of c:204", "g1", 0)
    assert (chunk.attributes, chunk.metadata) == ({"n": 204}, {"token_count": 204})
    assert await index.get(name, []) == {}
    await index.drop(name)
    with pytest.raises(NotFound):
        await index.get(name, wanted)
