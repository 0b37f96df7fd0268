"""Vector stores that expire: their contents are deleted once somebody reads them, and their records stay."""

from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest
from tests.clock import CLOCK
from tests.services.knowledge.knowledge_fixture import LEASE_SECONDS, KnowledgeFixture
from tests.store.conftest import Cloud

from stint.domain.errors import InvalidRequest, NotFound, StoreUnavailable, WriteInProgress
from stint.domain.openai.files import FileExpiry
from stint.domain.openai.vector_stores import UpdateVectorStore, UpdateVectorStoreFile
from stint.domain.retrieval import SearchRequest
from stint.services.knowledge.files import NewFile

DAY = {"anchor": "last_active_at", "days": 1}
DAY_SECONDS = 86_400

Action = Callable[[KnowledgeFixture, str], Awaitable[object]]


async def expired(knowledge: KnowledgeFixture, *texts: str) -> str:
    store_id = await knowledge.create(*(texts or ("Llamas live in Peru.",)), expires_after=DAY)
    CLOCK.move(DAY_SECONDS + 1)
    return store_id


def contents(knowledge: KnowledgeFixture) -> list[str]:
    return [*knowledge.index.indexes, *knowledge.cloud.blobs(knowledge.tenant)]


READS: dict[str, Action] = {
    "get": lambda knowledge, store_id: knowledge.stores.get(store_id),
    "list": lambda knowledge, _: knowledge.stores.list(None, None, 10, "asc"),
    "files": lambda knowledge, store_id: knowledge.documents.list(store_id, None, None, 10, "asc"),
    "search": lambda knowledge, store_id: knowledge.find(store_id, "llamas"),
}


@pytest.mark.parametrize("read", READS.values(), ids=READS)
async def test_contents_of_an_expired_store_are_deleted_after_it_is_read(
    knowledge: KnowledgeFixture, read: Action
) -> None:
    store_id = await expired(knowledge)
    assert contents(knowledge)

    for _ in range(3):
        with suppress(InvalidRequest):
            await read(knowledge, store_id)

    assert len(knowledge.queue.deletions) == 1
    await knowledge.finish_deletions()
    assert contents(knowledge) == []


async def test_an_emptied_store_still_lists_its_files(knowledge: KnowledgeFixture) -> None:
    """OpenAI's guide creates a new store from the files of the expired one."""
    store_id = await expired(knowledge, "Llamas", "Peru")
    await knowledge.stores.get(store_id)
    await knowledge.finish_deletions()

    store = await knowledge.stores.get(store_id)
    assert (store.status, store.file_counts.total, store.usage_bytes) == ("expired", 2, 0)
    assert await knowledge.statuses(store_id) == ["completed"] * 2


async def test_a_store_whose_task_could_not_be_sent_is_emptied_by_the_next_read(knowledge: KnowledgeFixture) -> None:
    store_id = await expired(knowledge)
    knowledge.queue.refuses = True
    with pytest.raises(StoreUnavailable):
        await knowledge.stores.get(store_id)
    knowledge.queue.refuses = False

    await knowledge.stores.get(store_id)
    await knowledge.finish_deletions()

    assert contents(knowledge) == []


UPDATES: dict[str, Action] = {
    "expiry": lambda knowledge, store_id: knowledge.stores.update(store_id, UpdateVectorStore(expires_after=None)),
    "name": lambda knowledge, store_id: knowledge.stores.update(store_id, UpdateVectorStore(name="new")),
    "file": lambda knowledge, store_id: knowledge.add(store_id, "Peru"),
}


@pytest.mark.parametrize("update", UPDATES.values(), ids=UPDATES)
async def test_an_expired_store_cannot_be_changed(knowledge: KnowledgeFixture, update: Action) -> None:
    store_id = await expired(knowledge)

    with pytest.raises(InvalidRequest, match="has expired"):
        await update(knowledge, store_id)

    assert (await knowledge.stores.get(store_id)).status == "expired"


async def test_attributes_and_texts_of_an_expired_store_are_refused(knowledge: KnowledgeFixture) -> None:
    store_id = await expired(knowledge)
    file_id = await knowledge.file_of(store_id)
    await knowledge.finish_deletions()

    with pytest.raises(InvalidRequest, match="has expired"):
        await knowledge.documents.update(store_id, file_id, UpdateVectorStoreFile(attributes={"year": 2026}))
    with pytest.raises(InvalidRequest, match="has expired"):
        await knowledge.documents.read_content(store_id, file_id)


async def test_a_search_that_ends_after_the_store_was_emptied_does_not_revive_it(
    cloud: Cloud, knowledge: KnowledgeFixture
) -> None:
    store_id = await expired(knowledge)
    await knowledge.stores.get(store_id)

    await cloud.store.vector_stores.touch(knowledge.tenant, store_id)

    assert (await knowledge.stores.get(store_id)).status == "expired"
    await knowledge.finish_deletions()
    assert contents(knowledge) == []


async def test_a_task_for_a_store_that_has_not_expired_deletes_nothing(knowledge: KnowledgeFixture) -> None:
    store_id = await expired(knowledge)
    await knowledge.stores.get(store_id)
    other = await knowledge.create("Llamas")
    [task] = knowledge.queue.deletions

    await knowledge.deletions.continue_deletion(task.model_copy(update={"vector_store_id": other}), 30)

    assert await knowledge.find(other, "llamas") == ["Llamas"]


async def test_a_file_that_is_still_ingested_ends_with_its_store(cloud: Cloud, knowledge: KnowledgeFixture) -> None:
    store_id = await knowledge.create("Llamas", expires_after=DAY)
    file_id = await knowledge.add(store_id, "Peru")
    CLOCK.move(DAY_SECONDS + 1)
    found = await cloud.store.vector_store_documents.get(knowledge.tenant, store_id, file_id)
    await cloud.store.document_leases.acquire(knowledge.tenant, store_id, found, "a" * 32, 1, LEASE_SECONDS)
    await knowledge.stores.get(store_id)
    tasks = list(knowledge.queue.deletions)

    with pytest.raises(WriteInProgress):
        await knowledge.finish_deletions()
    CLOCK.move(LEASE_SECONDS + 1)
    knowledge.queue.deletions[:] = tasks
    await knowledge.finish_deletions()
    await knowledge.work()

    assert contents(knowledge) == []
    failed = await knowledge.documents.get(store_id, file_id)
    assert failed.status == "failed"
    assert failed.last_error is not None
    assert "has expired" in failed.last_error.message


async def test_the_task_of_a_file_in_an_expired_store_writes_nothing(knowledge: KnowledgeFixture) -> None:
    store_id = await knowledge.create(expires_after=DAY)
    await knowledge.add(store_id, "Peru")
    CLOCK.move(DAY_SECONDS + 1)

    await knowledge.work()

    assert contents(knowledge) == []
    assert await knowledge.statuses(store_id) == ["failed"]


async def test_a_deleted_expired_store_leaves_nothing(knowledge: KnowledgeFixture) -> None:
    store_id = await expired(knowledge)
    await knowledge.stores.get(store_id)
    await knowledge.finish_deletions()

    await knowledge.stores.delete(store_id)

    assert knowledge.rest() == []


async def test_what_the_server_deletes_itself_is_no_use_of_a_store(knowledge: KnowledgeFixture) -> None:
    store_id = await knowledge.create("Llamas", expires_after=DAY)
    file = await knowledge.files.create(
        NewFile("a.txt", "assistants", FileExpiry(anchor="created_at", seconds=3_600)), b"Peru"
    )
    await knowledge.attach(store_id, file.id)
    await knowledge.work()
    before = (await knowledge.stores.get(store_id)).last_active_at

    CLOCK.move(DAY_SECONDS // 2)
    await knowledge.stores.get(store_id)
    await knowledge.finish_deletions()
    assert (await knowledge.stores.get(store_id)).last_active_at == before
    await knowledge.files.delete(await knowledge.file_of(store_id))

    store = await knowledge.stores.get(store_id)
    assert (store.last_active_at, store.file_counts.total) == (before, 0)


async def test_stores_that_were_read_before_they_ended_are_searched_no_more(
    cloud: Cloud, knowledge: KnowledgeFixture
) -> None:
    deleted, emptied = await knowledge.create("Llamas"), await knowledge.create("Llamas", expires_after=DAY)
    searches = [await knowledge.search.open(SearchRequest([store_id], ())) for store_id in (deleted, emptied)]
    for search in searches:
        assert [chunk.text for chunk in await search.search(["llamas"])] == ["Llamas"]

    await cloud.store.vector_stores.mark_deleted(knowledge.tenant, deleted)
    CLOCK.move(DAY_SECONDS + 1)
    await knowledge.stores.get(emptied)

    for search in searches:
        with pytest.raises(NotFound):
            await search.search(["llamas"])
