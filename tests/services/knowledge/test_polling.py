"""Reads of stores and batches that are polled while their files are ingested."""

import pytest
from tests.clock import CLOCK
from tests.services.knowledge.knowledge_fixture import KnowledgeFixture

from stint.domain.openai.vector_stores import CreateFileBatch
from stint.services.knowledge import usage

FILES = 6


@pytest.fixture(autouse=True)
def few_documents_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a count of six documents be kept for three seconds."""
    monkeypatch.setattr(usage, "DOCUMENTS_PER_SECOND", 2)


async def with_a_batch(knowledge: KnowledgeFixture) -> tuple[str, str]:
    """Return a store and a batch of files in progress."""
    store_id = await knowledge.create()
    return store_id, await add_batch(knowledge, store_id)


async def add_batch(knowledge: KnowledgeFixture, store_id: str) -> str:
    file_ids = [await knowledge.upload(f"Llama {number}") for number in range(FILES)]
    return (await knowledge.batches.create(store_id, CreateFileBatch(file_ids=file_ids))).id


async def test_polls_of_a_store_and_a_batch_read_their_documents_once_in_a_while(knowledge: KnowledgeFixture) -> None:
    store_id, batch_id = await with_a_batch(knowledge)
    CLOCK.move(3)
    knowledge.cloud.forget()

    for _ in range(5):
        assert (await knowledge.stores.get(store_id)).file_counts.in_progress == FILES
        assert (await knowledge.batches.get(store_id, batch_id)).file_counts.in_progress == FILES

    assert knowledge.cloud.calls["Query"] == 2
    await knowledge.work()
    CLOCK.move(3)
    assert (await knowledge.stores.get(store_id)).status == "completed"
    assert (await knowledge.batches.get(store_id, batch_id)).status == "completed"


async def test_a_file_that_is_added_or_deleted_is_counted_at_once(knowledge: KnowledgeFixture) -> None:
    store_id, _ = await with_a_batch(knowledge)
    assert (await knowledge.stores.get(store_id)).file_counts.total == FILES

    file_id = await knowledge.add(store_id, "Peru")
    assert (await knowledge.stores.get(store_id)).file_counts.total == FILES + 1
    await knowledge.documents.delete(store_id, file_id)
    assert (await knowledge.stores.get(store_id)).file_counts.total == FILES


async def test_a_cancelled_batch_is_counted_at_once(knowledge: KnowledgeFixture) -> None:
    store_id, batch_id = await with_a_batch(knowledge)
    await knowledge.batches.get(store_id, batch_id)

    cancelled = await knowledge.batches.cancel(store_id, batch_id)

    assert (cancelled.status, cancelled.file_counts.cancelled) == ("cancelled", FILES)
    assert (await knowledge.stores.get(store_id)).file_counts.in_progress == 0


async def test_a_small_store_is_always_current(knowledge: KnowledgeFixture) -> None:
    store_id = await knowledge.create()
    await knowledge.add(store_id, "Llamas")
    assert (await knowledge.stores.get(store_id)).status == "in_progress"

    await knowledge.work()

    assert (await knowledge.stores.get(store_id)).status == "completed"


async def test_counts_of_many_stores_take_no_more_memory(
    knowledge: KnowledgeFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(usage, "MAX_COUNTS", 1)
    first, second = await knowledge.create(), await knowledge.create()
    for store_id in (first, second):
        await add_batch(knowledge, store_id)
    await knowledge.stores.get(first)
    await knowledge.stores.get(second)
    knowledge.cloud.forget()

    await knowledge.stores.get(second)
    assert knowledge.cloud.calls["Query"] == 0
    await knowledge.stores.get(first)
    assert knowledge.cloud.calls["Query"] == 1
