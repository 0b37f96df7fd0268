"""Write units, calls and objects of vector stores, as docs/knowledge.md counts them."""

from tests.services.knowledge.knowledge_fixture import KnowledgeFixture


def writes_of(knowledge: KnowledgeFixture) -> float:
    names = ("PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems")
    return sum(knowledge.cloud.units[name] for name in names)


async def test_a_small_file_costs_at_most_six_write_units_and_its_chunks(knowledge: KnowledgeFixture) -> None:
    store_id = await knowledge.create("Peru")
    file_id = await knowledge.upload("Llamas live in Peru.")
    knowledge.cloud.forget()
    knowledge.index.calls.clear()

    await knowledge.attach(store_id, file_id)
    await knowledge.work()

    assert writes_of(knowledge) <= 6
    assert dict(knowledge.index.calls) == {"upsert": 1}
    assert knowledge.cloud.calls["PutObject"] == 1


async def test_chunks_are_upserted_in_batches(knowledge: KnowledgeFixture) -> None:
    small = {"type": "static", "static": {"max_chunk_size_tokens": 100, "chunk_overlap_tokens": 0}}
    store_id = await knowledge.create(chunking_strategy=small)
    await knowledge.add(store_id, "\n\n".join(f"Llama {number} lives in Peru. " * 15 for number in range(300)))
    knowledge.index.calls.clear()
    await knowledge.work()
    assert len(knowledge.index.keys) >= 300
    assert knowledge.index.calls["upsert"] - 1 <= len(knowledge.index.keys) // 200 + 1  # one found no index


async def test_a_search_reads_its_store_and_its_documents_and_writes_nothing(knowledge: KnowledgeFixture) -> None:
    store_id = await knowledge.create("Llamas live in Peru.", "Transformers")
    knowledge.cloud.forget()
    knowledge.index.calls.clear()

    assert await knowledge.find(store_id, "llamas")

    assert writes_of(knowledge) == 0
    assert dict(knowledge.cloud.calls) == {"BatchGetItem": 2}
    assert dict(knowledge.index.calls) == {"query": 1}


async def test_a_store_counts_its_files_once_after_they_changed(knowledge: KnowledgeFixture) -> None:
    store_id = await knowledge.create("Llamas", "Peru")
    knowledge.cloud.forget()
    for _ in range(3):
        await knowledge.stores.get(store_id)
    assert knowledge.cloud.calls["Query"] == knowledge.cloud.calls["UpdateItem"] == 1
