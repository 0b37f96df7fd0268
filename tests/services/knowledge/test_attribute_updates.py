"""Attributes of files that are changed after their ingestion."""

import pytest
from tests.clock import CLOCK
from tests.services.knowledge.killable import Death, Killed
from tests.services.knowledge.knowledge_fixture import LEASE_SECONDS, KnowledgeFixture
from tests.store.conftest import Cloud

from stint.domain.errors import Conflict, Interrupted, StoreUnavailable
from stint.domain.filters import ComparisonFilter
from stint.domain.openai.vector_stores import UpdateVectorStoreFile

OLD, NEW = UpdateVectorStoreFile(attributes={"year": 2025}), UpdateVectorStoreFile(attributes={"year": 2026})


async def found_by_year(knowledge: KnowledgeFixture, store_id: str, year: int) -> list[str]:
    condition = ComparisonFilter(type="eq", key="year", value=year)
    return await knowledge.find(store_id, "llamas", filters=condition.model_dump())


async def test_new_attributes_are_found_at_once_and_nothing_is_embedded(knowledge: KnowledgeFixture) -> None:
    store_id = await knowledge.create("Llamas")
    file_id = await knowledge.file_of(store_id)
    knowledge.embedder.texts.clear()

    updated = await knowledge.documents.update(store_id, file_id, NEW)

    assert (updated.status, updated.attributes) == ("completed", {"year": 2026})
    assert knowledge.embedder.texts == []
    assert knowledge.queue.ingestions == []
    assert await found_by_year(knowledge, store_id, 2026) == ["Llamas"]
    await knowledge.documents.update(store_id, file_id, OLD)
    assert await found_by_year(knowledge, store_id, 2026) == []
    assert await found_by_year(knowledge, store_id, 2025) == ["Llamas"]


async def test_an_update_costs_two_units_and_one_call_of_the_index(knowledge: KnowledgeFixture) -> None:
    store_id = await knowledge.create("Llamas")
    file_id = await knowledge.file_of(store_id)
    knowledge.cloud.forget()
    knowledge.index.calls.clear()

    await knowledge.documents.update(store_id, file_id, NEW)

    assert knowledge.cloud.calls["UpdateItem"] == knowledge.cloud.units["UpdateItem"] == 2
    assert dict(knowledge.index.calls) == {"update_attributes": 1}


async def test_attributes_that_change_during_the_ingestion_are_those_that_are_found(
    cloud: Cloud, knowledge: KnowledgeFixture
) -> None:
    store_id = await knowledge.create("Peru")
    file_id = await knowledge.add(store_id, "Llamas")
    found = await cloud.store.vector_store_documents.get(knowledge.tenant, store_id, file_id)
    lease = await cloud.store.document_leases.acquire(knowledge.tenant, store_id, found, "a" * 32, 1, LEASE_SECONDS)

    assert (await knowledge.documents.update(store_id, file_id, NEW)).status == "in_progress"
    with pytest.raises(Interrupted, match="replaced"):
        await lease.complete(10, None)
    await lease.release()
    await knowledge.work()

    assert await found_by_year(knowledge, store_id, 2026) == ["Llamas"]


@pytest.mark.parametrize("moment", range(1, 9))
async def test_an_update_that_is_killed_is_finished_after_the_file_is_read(
    cloud: Cloud, tenant: str, moment: int
) -> None:
    alive = KnowledgeFixture(cloud, tenant)
    store_id = await alive.create("Llamas")
    file_id = await alive.file_of(store_id)
    with pytest.raises(Killed):
        await KnowledgeFixture(cloud, tenant, alive, Death(moment)).documents.update(store_id, file_id, NEW)

    CLOCK.move(1_300)
    year = (await alive.documents.get(store_id, file_id)).attributes.get("year")
    await alive.work()

    for each in (2025, 2026):
        assert await found_by_year(alive, store_id, each) == (["Llamas"] if each == year else [])
    CLOCK.move(1_300)
    await alive.documents.get(store_id, file_id)
    assert alive.queue.ingestions == []


async def test_the_worker_finishes_an_update_that_the_index_refused(
    knowledge: KnowledgeFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    store_id = await knowledge.create("Llamas")
    file_id = await knowledge.file_of(store_id)

    async def refuse(*_: object) -> None:
        raise StoreUnavailable("The index is down.")

    with monkeypatch.context() as patch:
        patch.setattr(knowledge.index, "update_attributes", refuse)
        with pytest.raises(StoreUnavailable):
            await knowledge.documents.update(store_id, file_id, NEW)
    await knowledge.work()

    assert await found_by_year(knowledge, store_id, 2026) == ["Llamas"]


async def test_a_second_update_at_the_same_time_is_refused(cloud: Cloud, knowledge: KnowledgeFixture) -> None:
    store_id = await knowledge.create("Llamas")
    file_id = await knowledge.file_of(store_id)
    found = await cloud.store.vector_store_documents.get(knowledge.tenant, store_id, file_id)
    await cloud.store.document_leases.update(knowledge.tenant, store_id, found, found.settings, LEASE_SECONDS)

    with pytest.raises(Conflict):
        await knowledge.documents.update(store_id, file_id, NEW)


async def test_a_file_that_is_deleted_during_an_update_leaves_nothing(
    knowledge: KnowledgeFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    store_id = await knowledge.create("Llamas")
    file_id = await knowledge.file_of(store_id)
    write = knowledge.index.update_attributes

    async def delete_first(*arguments: object) -> None:
        await knowledge.documents.delete(store_id, file_id)
        await write(*arguments)  # type: ignore[arg-type]  # as they came

    with monkeypatch.context() as patch:
        patch.setattr(knowledge.index, "update_attributes", delete_first)
        with pytest.raises(Interrupted, match="deleted"):
            await knowledge.documents.update(store_id, file_id, NEW)
    CLOCK.move(LEASE_SECONDS + 3)
    await knowledge.work()
    await knowledge.finish_deletions()

    assert knowledge.index.keys == []
