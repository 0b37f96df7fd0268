"""Batches of files: which files they count."""

from typing import Any

import pytest
from tests.services.knowledge.knowledge_fixture import KnowledgeFixture

from stint.domain.errors import Conflict, InvalidRequest, NotFound
from stint.domain.openai.vector_stores import CreateFileBatch, UpdateVectorStoreFile
from stint.store.failures import ConditionFailed
from stint.store.stored_documents import StoredDocument
from stint.store.vector_store_documents import VectorStoreDocuments


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


async def test_a_batch_is_added_although_another_changes_the_same_files(
    knowledge: KnowledgeFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    store_id = await knowledge.create("Llamas")
    file_ids = [await knowledge.file_of(store_id), await knowledge.upload("Peru")]
    request, replace = CreateFileBatch(file_ids=file_ids, attributes={"year": 2026}), VectorStoreDocuments.replace

    async def come_second(*args: Any, **named: Any) -> StoredDocument:
        monkeypatch.undo()
        await knowledge.batches.create(store_id, request)
        return await replace(*args, **named)

    monkeypatch.setattr(VectorStoreDocuments, "replace", come_second)
    batch = await knowledge.batches.create(store_id, request)

    await knowledge.work()
    assert (await knowledge.batches.get(store_id, batch.id)).file_counts.completed == 2


async def test_files_of_a_batch_that_could_not_be_added_whole_are_ingested(
    knowledge: KnowledgeFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    store_id = await knowledge.create("Llamas")
    file_ids = [await knowledge.file_of(store_id), await knowledge.upload("Peru")]

    async def lose(*_: object, **__: object) -> None:
        raise ConditionFailed(None)

    monkeypatch.setattr(VectorStoreDocuments, "replace", lose)
    with pytest.raises(Conflict):
        await knowledge.batches.create(store_id, CreateFileBatch(file_ids=file_ids, attributes={"year": 2026}))
    monkeypatch.undo()

    await knowledge.work()
    assert await knowledge.statuses(store_id) == ["completed", "completed"]
