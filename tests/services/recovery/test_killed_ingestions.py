"""Ingestions and deletions whose process is killed at any call, and continued by others."""

import asyncio
from collections.abc import Awaitable

import pytest
from tests.clock import CLOCK
from tests.services.knowledge.killable import Death, Killed
from tests.services.knowledge.knowledge_fixture import LEASE_SECONDS, KnowledgeFixture
from tests.store.conftest import Cloud

MOMENTS = 22
"""More than an ingestion has."""


async def until_killed(work: Awaitable[object]) -> None:
    try:
        await work
    except Killed:
        await asyncio.sleep(0)


async def kill_ingestion(cloud: Cloud, tenant: str, moment: int) -> tuple[KnowledgeFixture, str, str, bool]:
    """Return a store and its file, whose worker was killed, and whether the ingestion had that many moments."""
    alive = KnowledgeFixture(cloud, tenant)
    store_id = await alive.create("Peru")
    file_id = await alive.add(store_id, "Llamas live in Peru.")
    tasks = list(alive.queue.ingestions)
    death = Death(moment)
    await until_killed(KnowledgeFixture(cloud, tenant, alive, death).work())
    alive.queue.ingestions[:] = tasks
    return alive, store_id, file_id, death.reached


@pytest.mark.parametrize("moment", range(1, MOMENTS))
async def test_the_next_delivery_finishes_a_killed_ingestion(cloud: Cloud, tenant: str, moment: int) -> None:
    alive, store_id, file_id, _ = await kill_ingestion(cloud, tenant, moment)

    CLOCK.move(LEASE_SECONDS + 3)
    await alive.work()

    assert (await alive.documents.get(store_id, file_id)).status == "completed"
    assert await alive.find(store_id, "llamas") == ["Llamas live in Peru."]
    assert len(alive.index.keys) == 2
    assert len(alive.cloud.blobs(tenant)) == 2  # the texts of both files


@pytest.mark.parametrize("moment", range(1, MOMENTS))
async def test_a_file_that_is_removed_after_a_killed_ingestion_leaves_nothing(
    cloud: Cloud, tenant: str, moment: int
) -> None:
    alive, store_id, file_id, _ = await kill_ingestion(cloud, tenant, moment)
    before = [key for key in alive.rest() if file_id not in key]

    await alive.documents.delete(store_id, file_id)
    await alive.work()
    CLOCK.move(LEASE_SECONDS + 3)
    await alive.finish_deletions()

    assert sorted(alive.rest()) == sorted(before)


@pytest.mark.parametrize("moment", range(1, MOMENTS))
async def test_a_store_that_is_deleted_after_a_killed_ingestion_leaves_nothing(
    cloud: Cloud, tenant: str, moment: int
) -> None:
    alive, store_id, _, _ = await kill_ingestion(cloud, tenant, moment)

    await alive.stores.delete(store_id)
    await alive.work()
    CLOCK.move(LEASE_SECONDS + 3)
    await alive.finish_deletions()

    assert alive.rest() == []


@pytest.mark.parametrize("moment", range(1, MOMENTS))
async def test_a_cancelled_file_is_not_found_after_a_killed_ingestion(cloud: Cloud, tenant: str, moment: int) -> None:
    alive, store_id, file_id, _ = await kill_ingestion(cloud, tenant, moment)

    cancelled = await cloud.store.vector_store_documents.cancel(tenant, store_id, file_id)
    CLOCK.move(LEASE_SECONDS + 3)
    await alive.work()

    assert await alive.find(store_id, "llamas") == ([] if cancelled else ["Llamas live in Peru."])
    assert len(alive.index.keys) == (1 if cancelled else 2)


@pytest.mark.parametrize("moment", range(1, MOMENTS))
async def test_the_worker_finishes_the_deletion_of_a_killed_process(cloud: Cloud, tenant: str, moment: int) -> None:
    alive = KnowledgeFixture(cloud, tenant)
    store_id = await alive.create("Peru", "Llamas")
    await cloud.store.vector_stores.mark_deleted(tenant, store_id)
    killable = KnowledgeFixture(cloud, tenant, alive, Death(moment))

    await until_killed(killable.stores.delete_store(store_id))
    await alive.stores.delete_store(store_id) if alive.rest() else None

    assert alive.rest() == []


async def test_the_moments_cover_an_ingestion(cloud: Cloud, tenant: str) -> None:
    assert (await kill_ingestion(cloud, tenant, 10))[3]
    assert not (await kill_ingestion(cloud, f"{tenant}b", MOMENTS + 8))[3]
