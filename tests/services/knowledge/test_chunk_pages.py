"""The chunks of a file, page by page."""

from typing import Any

import pytest
from tests.services.knowledge.knowledge_fixture import KnowledgeFixture
from tests.services.knowledge.list_index import ListIndex

from stint.domain.errors import Conflict, InvalidRequest, NotFound
from stint.domain.filters import Attributes
from stint.domain.openai.vector_stores import VectorStoreFileChunkList
from stint.domain.vector_stores import InsertedChunk, WindowChunking
from stint.retrieval.port import Hit
from stint.services.knowledge import chunk_pages
from stint.services.knowledge.insertions import NewText

SMALL = {"type": "static", "static": {"max_chunk_size_tokens": 100, "chunk_overlap_tokens": 0}}
TEXT = "\n\n".join(f"Llama {number} lives in Peru. " * 12 for number in range(7))


async def read(
    knowledge: KnowledgeFixture, store_id: str, file_id: str, after: str | None = None, limit: int = 20, **order: Any
) -> VectorStoreFileChunkList:
    return await knowledge.documents.list_chunks(store_id, file_id, after, limit, order.get("order", "asc"))


async def read_all(knowledge: KnowledgeFixture, store_id: str, file_id: str, limit: int, **order: Any) -> list[int]:
    """Return the numbers of all chunks, page by page."""
    numbers, after = list[int](), None
    while True:
        page = await read(knowledge, store_id, file_id, after, limit, **order)
        numbers += [chunk.index for chunk in page.data]
        if not page.has_more:
            return numbers
        after = page.last_id


async def test_chunks_are_listed_as_they_are_indexed(knowledge: KnowledgeFixture) -> None:
    store_id = await knowledge.create(chunking_strategy=SMALL)
    file_id = await knowledge.add(store_id, TEXT)
    await knowledge.work()

    page = await read(knowledge, store_id, file_id)

    [entries] = [entries for _, entries in knowledge.index.indexes.values()]
    assert [chunk.text for chunk in page.data] == [entries[key].text for key in sorted(entries)]
    assert [chunk.index for chunk in page.data] == list(range(7))
    assert page.total == 7
    first = page.data[0]
    assert (first.id, page.first_id, page.last_id) == (f"{file_id}:0", f"{file_id}:0", f"{file_id}:6")
    assert first.bytes == len(first.text.encode())
    assert first.tokens is not None
    assert 0 < first.tokens <= 100


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 8])
async def test_pages_have_each_chunk_once_in_both_orders(knowledge: KnowledgeFixture, limit: int) -> None:
    store_id = await knowledge.create(chunking_strategy=SMALL)
    file_id = await knowledge.add(store_id, TEXT)
    await knowledge.work()

    assert await read_all(knowledge, store_id, file_id, limit) == list(range(7))
    assert await read_all(knowledge, store_id, file_id, limit, order="desc") == list(range(6, -1, -1))


async def test_a_page_reads_its_own_chunks_and_writes_nothing(knowledge: KnowledgeFixture) -> None:
    store_id = await knowledge.create(chunking_strategy=SMALL)
    file_id = await knowledge.add(store_id, TEXT)
    await knowledge.work()
    knowledge.cloud.forget()
    knowledge.index.calls.clear()

    await read(knowledge, store_id, file_id, limit=2)

    assert dict(knowledge.cloud.calls) == {"GetItem": 1, "BatchGetItem": 1}
    assert dict(knowledge.index.calls) == {"get": 1}


async def test_a_page_ends_before_it_is_too_large(knowledge: KnowledgeFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    store_id = await knowledge.create(chunking_strategy=SMALL)
    file_id = await knowledge.add(store_id, TEXT)
    await knowledge.work()
    monkeypatch.setattr(chunk_pages, "MAX_BYTES", 700)

    page = await read(knowledge, store_id, file_id)

    assert (len(page.data), page.has_more) == (2, True)
    monkeypatch.setattr(chunk_pages, "MAX_BYTES", 10)
    assert await read_all(knowledge, store_id, file_id, 20) == list(range(7))


async def test_inserted_chunks_are_listed_without_a_count_of_tokens(knowledge: KnowledgeFixture) -> None:
    store_id = await knowledge.create()
    await knowledge.insertions.insert_chunks(store_id, {"animals": [InsertedChunk(text=each) for each in "ab"]})
    await knowledge.work()

    page = await read(knowledge, store_id, await knowledge.file_of(store_id))

    assert [(chunk.text, chunk.bytes, chunk.tokens) for chunk in page.data] == [("a", 1, None), ("b", 1, None)]


async def test_a_file_without_chunks_is_refused_as_its_content_is(knowledge: KnowledgeFixture) -> None:
    store_id = await knowledge.create("Llamas")
    added = await knowledge.add(store_id, "Peru")

    with pytest.raises(Conflict, match="is in_progress, so its chunks cannot be read"):
        await read(knowledge, store_id, added)
    with pytest.raises(NotFound):
        await read(knowledge, store_id, "file-unknown")


@pytest.mark.parametrize("after", ["", "0", "file-1:0", "{}:", "{}:x", "{}:-1", "{}:٣", "{}:1234567890"])
async def test_a_cursor_that_is_not_of_the_file_is_refused(knowledge: KnowledgeFixture, after: str) -> None:
    store_id = await knowledge.create("Llamas")
    file_id = await knowledge.file_of(store_id)

    with pytest.raises(InvalidRequest, match="not a chunk of the file"):
        await read(knowledge, store_id, file_id, after.format(file_id))
    assert (await read(knowledge, store_id, file_id, f"{file_id}:999")).data == []
    assert (await read(knowledge, store_id, file_id, f"{file_id}:0", order="desc")).data == []


async def test_chunks_of_a_document_that_is_ingested_again_are_of_one_generation(
    knowledge: KnowledgeFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    store_id = await knowledge.create()
    await insert(knowledge, store_id, "Llamas live in Peru.")
    file_id = await knowledge.file_of(store_id)
    get, texts = ListIndex.get, ["Llamas live in Chile."]

    async def replace_and_get(index: ListIndex, name: str, keys: list[str]) -> dict[str, Hit]:
        if texts:
            await insert(knowledge, store_id, texts.pop())
        return await get(index, name, keys)

    monkeypatch.setattr(ListIndex, "get", replace_and_get)

    assert [chunk.text for chunk in (await read(knowledge, store_id, file_id)).data] == ["Llamas live in Chile."]


async def test_a_page_whose_chunks_are_missing_in_the_index_is_refused(knowledge: KnowledgeFixture) -> None:
    store_id = await knowledge.create(chunking_strategy=SMALL)
    file_id = await knowledge.add(store_id, TEXT)
    await knowledge.work()
    [entries] = [entries for _, entries in knowledge.index.indexes.values()]
    for key in sorted(entries)[:3]:
        del entries[key]

    with pytest.raises(Conflict, match="being ingested again"):
        await read(knowledge, store_id, file_id, limit=3)
    assert [chunk.index for chunk in (await read(knowledge, store_id, file_id, limit=4)).data] == [3]


async def insert(knowledge: KnowledgeFixture, store_id: str, text: str, attributes: Attributes | None = None) -> None:
    inserted = [NewText("animals", text, attributes or {})]
    await knowledge.insertions.insert_texts(store_id, inserted, WindowChunking(size=512))
    await knowledge.work()
