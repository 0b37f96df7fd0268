"""Files that expire while vector stores have their chunks."""

import pytest
from tests.clock import CLOCK
from tests.services.knowledge.knowledge_fixture import KnowledgeFixture

from stint.domain.errors import NotFound
from stint.domain.openai.files import FileExpiry
from stint.services.knowledge.files import NewFile


async def with_a_file_that_expires(knowledge: KnowledgeFixture) -> tuple[str, str]:
    """Return a store with a file that expires in an hour, and one that does not, and the first one's id."""
    store_id = await knowledge.create("Transformers")
    file = await knowledge.files.create(
        NewFile("a.txt", "assistants", FileExpiry(anchor="created_at", seconds=3_600)), b"Llamas live in Peru."
    )
    await knowledge.attach(store_id, file.id)
    await knowledge.work()
    assert await knowledge.find(store_id, "llamas") == ["Llamas live in Peru."]
    assert (await knowledge.stores.get(store_id)).file_counts.total == 2
    return store_id, file.id


async def test_an_expired_file_is_in_no_store_any_more(knowledge: KnowledgeFixture) -> None:
    store_id, file_id = await with_a_file_that_expires(knowledge)

    CLOCK.move(3_601)

    assert await knowledge.find(store_id, "llamas") == []
    assert await knowledge.find(store_id, "transformers") == ["Transformers"]
    assert await knowledge.statuses(store_id) == ["completed"]
    with pytest.raises(NotFound):
        await knowledge.documents.get(store_id, file_id)
    assert (await knowledge.stores.get(store_id)).file_counts.total == 1


async def test_chunks_of_an_expired_file_are_deleted_after_its_store_is_read(knowledge: KnowledgeFixture) -> None:
    store_id, file_id = await with_a_file_that_expires(knowledge)
    CLOCK.move(3_601)

    await knowledge.stores.get(store_id)
    await knowledge.finish_deletions()

    assert [entry for entry in knowledge.rest() if file_id in entry] == []
    assert len(knowledge.index.keys) == 1


async def test_a_file_that_expires_before_its_ingestion_leaves_nothing(knowledge: KnowledgeFixture) -> None:
    store_id = await knowledge.create("Transformers")
    file = await knowledge.files.create(
        NewFile("a.txt", "assistants", FileExpiry(anchor="created_at", seconds=3_600)), b"Llamas"
    )
    await knowledge.attach(store_id, file.id)
    CLOCK.move(3_601)

    await knowledge.work()

    assert len(knowledge.index.keys) == 1
    assert (await knowledge.stores.get(store_id)).status == "completed"
