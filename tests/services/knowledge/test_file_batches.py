"""Batches of files: which files they count."""

import pytest
from tests.services.knowledge.knowledge_fixture import KnowledgeFixture

from stint.domain.errors import InvalidRequest, NotFound
from stint.domain.openai.vector_stores import CreateFileBatch, UpdateVectorStoreFile


async def test_a_batch_counts_new_files_and_those_that_the_store_has(knowledge: KnowledgeFixture) -> None:
    store_id = await knowledge.create("Llamas")
    ids = [await knowledge.file_of(store_id), await knowledge.upload("Peru")]
    batch = await knowledge.batches.create(store_id, CreateFileBatch(file_ids=[*ids, ids[0]]))
    assert (batch.file_counts.completed, batch.file_counts.in_progress, batch.file_counts.total) == (1, 1, 2)
    await knowledge.work()
    assert (await knowledge.batches.get(store_id, batch.id)).status == "completed"


async def test_a_file_with_new_attributes_stays_in_its_batch(knowledge: KnowledgeFixture) -> None:
    store_id = await knowledge.create()
    file_id = await knowledge.upload("Llamas")
    batch = await knowledge.batches.create(store_id, CreateFileBatch(file_ids=[file_id]))
    await knowledge.work()
    await knowledge.documents.update(store_id, file_id, UpdateVectorStoreFile(attributes={"year": 2026}))
    await knowledge.work()
    assert (await knowledge.batches.get(store_id, batch.id)).file_counts.completed == 1


async def test_a_large_batch_is_added_in_several_transactions(knowledge: KnowledgeFixture) -> None:
    store_id = await knowledge.create()
    ids = [await knowledge.upload(f"Llama {number}") for number in range(120)]
    batch = await knowledge.batches.create(store_id, CreateFileBatch(file_ids=ids))
    assert batch.file_counts.in_progress == 120
    assert (await knowledge.batches.cancel(store_id, batch.id)).file_counts.cancelled == 120
    await knowledge.work()
    assert knowledge.index.keys == []


async def test_a_batch_with_an_unknown_file_adds_none(knowledge: KnowledgeFixture) -> None:
    store_id = await knowledge.create()
    ids = [await knowledge.upload("Llamas"), "file-" + "0" * 32]
    with pytest.raises(NotFound, match=ids[1]):
        await knowledge.batches.create(store_id, CreateFileBatch(file_ids=ids))
    with pytest.raises(InvalidRequest):
        await knowledge.batches.create(store_id, CreateFileBatch())
    assert (await knowledge.stores.get(store_id)).file_counts.total == 0
