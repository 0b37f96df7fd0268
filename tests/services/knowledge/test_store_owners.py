"""Stores that belong to a session, and ranks."""

import pytest
from tests.services.knowledge.knowledge_fixture import KnowledgeFixture

from stint.domain.errors import NotFound
from stint.domain.ids import new_name
from stint.domain.retrieval import SearchRequest
from stint.domain.vector_stores import EmbeddingChoice, VectorStoreSettings, WindowChunking
from stint.services.knowledge.insertions import NewText

EMBEDDING = EmbeddingChoice(name="words/four", model="words/four", dimension=4)


async def test_a_store_of_a_session_exists_for_that_session_only(knowledge: KnowledgeFixture) -> None:
    settings = VectorStoreSettings(embedding=EMBEDDING, owner="agent:session")
    store = await knowledge.stores.store.vector_stores.create(knowledge.stores.tenant, new_name("vs"), settings)
    await knowledge.insertions.insert_texts(
        store.id, [NewText("d1", "Llamas live in Peru.", {"page": 1})], WindowChunking(size=512)
    )
    await knowledge.work()

    found = await knowledge.search.search(SearchRequest([store.id], ["llamas"], session="agent:session"))
    assert [(one.document_id, one.text, one.metadata["page"]) for one in found] == [("d1", "Llamas live in Peru.", 1)]
    for session in (None, "agent:other"):
        with pytest.raises(NotFound):
            await knowledge.search.search(SearchRequest([store.id], ["llamas"], session=session))
    for reading in (
        knowledge.stores.get(store.id),
        knowledge.stores.delete(store.id),
        knowledge.documents.list(store.id, None, None, 10, "asc"),
        knowledge.add(store.id, "x"),
    ):
        with pytest.raises(NotFound):
            await reading
    assert (await knowledge.stores.list(None, None, 10, "desc")).data == []


async def test_equal_scores_are_in_the_order_of_their_documents(knowledge: KnowledgeFixture) -> None:
    store_id = await knowledge.create("Llamas a", "Llamas b", "Llamas c")
    first = await knowledge.find(store_id, "llamas")
    assert first == ["Llamas a", "Llamas b", "Llamas c"]
    assert [await knowledge.find(store_id, "llamas") for _ in range(3)] == [first] * 3


async def test_a_text_that_is_inserted_again_replaces_the_first(knowledge: KnowledgeFixture) -> None:
    store_id = await knowledge.create()
    for text in ("Llamas old", "Llamas new"):
        await knowledge.insertions.insert_texts(store_id, [NewText("d1", text, {})], WindowChunking(size=512))
        await knowledge.work()
    assert await knowledge.find(store_id, "llamas") == ["Llamas new"]
    assert len(knowledge.index.keys) == 1


async def test_a_threshold_drops_chunks_below_it(knowledge: KnowledgeFixture) -> None:
    store_id = await knowledge.create("Llamas live in Peru", "Llamas")
    both = await knowledge.find(store_id, "llamas peru")
    best = await knowledge.find(store_id, "llamas peru", ranking_options={"score_threshold": 0.9})
    assert (len(both), best) == (2, ["Llamas live in Peru"])
