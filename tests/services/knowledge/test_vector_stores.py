import pytest
from tests.clock import CLOCK
from tests.services.knowledge.knowledge_fixture import KnowledgeFixture
from tests.services.knowledge.list_index import WordsEmbedder

from stint.domain.errors import InvalidRequest, NotFound
from stint.domain.ids import new_name
from stint.domain.openai.vector_stores import CreateVectorStore, UpdateVectorStore, UpdateVectorStoreFile
from stint.domain.vector_stores import InsertedChunk
from stint.retrieval.port import Embeddings


async def test_a_file_in_a_store_is_found(knowledge: KnowledgeFixture) -> None:
    store_id = await knowledge.create("Llamas live in Peru.", "A transformer has attention.")

    assert await knowledge.find(store_id, "peru llamas") == ["Llamas live in Peru."]
    store = await knowledge.stores.get(store_id)
    assert store.status == "completed"
    assert store.file_counts.completed == store.file_counts.total == 2
    assert store.usage_bytes == len("Llamas live in Peru.A transformer has attention.") + 2 * 4 * 4


async def test_a_store_is_in_progress_until_the_worker_has_its_files(knowledge: KnowledgeFixture) -> None:
    store_id = await knowledge.create()
    file_id = await knowledge.add(store_id, "Llamas")
    store = await knowledge.stores.get(store_id)
    assert (store.status, store.file_counts.in_progress) == ("in_progress", 1)
    assert (await knowledge.documents.get(store_id, file_id)).status == "in_progress"

    await knowledge.work()

    assert (await knowledge.stores.get(store_id)).status == "completed"
    assert (await knowledge.documents.get(store_id, file_id)).status == "completed"


async def test_a_store_with_an_unknown_file_is_not_created(knowledge: KnowledgeFixture) -> None:
    with pytest.raises(NotFound):
        await knowledge.stores.create(CreateVectorStore(file_ids=["file-" + "0" * 32]))
    assert knowledge.rest() == []


async def test_a_file_that_is_added_twice_counts_once(knowledge: KnowledgeFixture) -> None:
    store_id = await knowledge.create("Llamas")
    file_id = await knowledge.file_of(store_id)
    again = await knowledge.attach(store_id, file_id)
    await knowledge.work()

    assert again.status == "completed"
    assert (await knowledge.stores.get(store_id)).file_counts.total == 1
    assert await knowledge.find(store_id, "llamas") == ["Llamas"]


async def test_a_removed_file_is_not_found_and_leaves_nothing(knowledge: KnowledgeFixture) -> None:
    store_id = await knowledge.create("Llamas")
    file_id = await knowledge.file_of(store_id)

    assert (await knowledge.documents.delete(store_id, file_id)).deleted

    assert await knowledge.find(store_id, "llamas") == []
    assert (await knowledge.stores.get(store_id)).file_counts.total == 0
    assert knowledge.index.keys == []
    assert knowledge.cloud.blobs(knowledge.tenant) == []
    with pytest.raises(NotFound):
        await knowledge.documents.get(store_id, file_id)


async def test_a_deleted_store_leaves_nothing(knowledge: KnowledgeFixture) -> None:
    store_id = await knowledge.create("Llamas", "Transformers")
    await knowledge.add(store_id, "Peru")

    await knowledge.stores.delete(store_id)
    await knowledge.work()

    assert knowledge.rest() == []
    with pytest.raises(NotFound):
        await knowledge.find(store_id, "llamas")


async def test_new_attributes_reach_the_search(knowledge: KnowledgeFixture) -> None:
    store_id = await knowledge.create("Llamas")
    file_id = await knowledge.file_of(store_id)
    new = {"type": "eq", "key": "year", "value": 2026}
    assert await knowledge.find(store_id, "llamas", filters=new) == []

    await knowledge.documents.update(store_id, file_id, UpdateVectorStoreFile(attributes={"year": 2026}))
    await knowledge.work()

    assert await knowledge.find(store_id, "llamas", filters=new) == ["Llamas"]
    assert (await knowledge.documents.get(store_id, file_id)).attributes == {"year": 2026}


async def test_a_file_that_cannot_be_read_fails_with_its_reason(knowledge: KnowledgeFixture) -> None:
    store_id = await knowledge.create("Llamas")
    file_id = await knowledge.add(store_id, "MZ\0\0", "setup.exe")
    await knowledge.work()

    failed = await knowledge.documents.get(store_id, file_id)
    assert failed.status == "failed"
    assert failed.last_error is not None
    assert failed.last_error.code == "unsupported_file"
    assert "exe" in failed.last_error.message
    assert (await knowledge.stores.get(store_id)).file_counts.failed == 1


async def test_a_text_that_the_embedding_model_refuses_fails_at_once(
    knowledge: KnowledgeFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_: object, **__: object) -> Embeddings:
        raise InvalidRequest("The text has too many tokens.")

    monkeypatch.setattr(WordsEmbedder, "embed", refuse)
    store_id = await knowledge.create("Llamas")

    failed = await knowledge.documents.get(store_id, await knowledge.file_of(store_id))
    assert failed.status == "failed"
    assert failed.last_error is not None
    assert failed.last_error.message == "The text has too many tokens."


async def test_a_vector_that_no_index_accepts_is_refused_before_anything_is_stored(knowledge: KnowledgeFixture) -> None:
    store_id = await knowledge.create()
    before = knowledge.rest()

    with pytest.raises(InvalidRequest, match="not a finite number of 32 bits") as refused:
        await knowledge.insertions.insert_chunks(
            store_id, {"a": [InsertedChunk(text="Llamas", metadata={}, embedding=[1e39, 0.0, 0.0, 0.0])]}
        )

    assert refused.value.param == "chunks[0].embedding"
    assert knowledge.rest() == before


async def test_a_store_expires_after_days_without_use(knowledge: KnowledgeFixture) -> None:
    store_id = await knowledge.create("Llamas", expires_after={"anchor": "last_active_at", "days": 1})
    CLOCK.move(80_000)
    assert await knowledge.find(store_id, "llamas") == ["Llamas"]
    CLOCK.move(80_000)
    assert (await knowledge.stores.get(store_id)).status == "completed"
    CLOCK.move(10_000)
    assert (await knowledge.stores.get(store_id)).status == "expired"
    with pytest.raises(InvalidRequest, match="expired"):
        await knowledge.find(store_id, "llamas")


async def test_an_update_changes_what_it_names(knowledge: KnowledgeFixture) -> None:
    store_id = await knowledge.create(name="old", metadata={"a": "1"})
    changed = await knowledge.stores.update(store_id, UpdateVectorStore.model_validate({"name": "new"}))
    assert (changed.name, changed.metadata) == ("new", {"a": "1"})
    changed = await knowledge.stores.update(store_id, UpdateVectorStore.model_validate({"metadata": None}))
    assert (changed.name, changed.metadata) == ("new", {})


async def test_stores_are_listed_newest_first(knowledge: KnowledgeFixture) -> None:
    ids = [await knowledge.create() for _ in range(5)]
    page = await knowledge.stores.list(None, None, 2, "desc")
    assert [store.id for store in page.data] == ids[:2:-1]
    assert page.has_more
    rest = await knowledge.stores.list(page.last_id, None, 10, "desc")
    assert [store.id for store in rest.data] == ids[2::-1]
    assert not rest.has_more


async def test_an_unknown_store_is_an_error_that_names_it(knowledge: KnowledgeFixture) -> None:
    unknown = new_name("vs")
    for reading in (knowledge.stores.get(unknown), knowledge.find(unknown, "x"), knowledge.stores.delete(unknown)):
        with pytest.raises(NotFound, match=unknown):
            await reading
