"""Ingestions into the packed index whose process is killed at calls to the table or the bucket, also in the index."""

from contextlib import suppress

import pytest
from tests.clock import CLOCK
from tests.services.knowledge.killable import Death, Killed, killable_bucket
from tests.services.knowledge.knowledge_fixture import LEASE_SECONDS, KnowledgeFixture
from tests.store.conftest import Cloud

from stint.retrieval.packed.index import PackedIndex
from stint.retrieval.packed.manifest import decode_manifest
from stint.retrieval.packed.unused import UNUSED_SECONDS
from stint.retrieval.port import VectorIndex
from stint.store.objects import BucketObjects

MOMENTS = range(11, 21)
"""The moments of an ingestion after its lease: the text, the manifest, the block, the manifest, the record."""


class PackedFixture(KnowledgeFixture):
    """Vector stores with a packed index. Each process has its own memory of it."""

    def make_index(self, death: Death | None) -> VectorIndex:
        cloud = self.cloud
        bucket = cloud.objects if death is None else killable_bucket(cloud, death)
        return PackedIndex(BucketObjects(bucket), 64_000_000)

    def unnamed_objects(self, store_id: str) -> list[str]:
        """Return the objects of a store's index that its manifest does not name, or all if there is no manifest."""
        prefix = f"packed/vs-{store_id.removeprefix('vs_')}"
        listed = self.cloud.s3.list_objects_v2(Bucket=self.cloud.bucket, Prefix=prefix).get("Contents", [])
        names = {each["Key"].rpartition("/")[2]: each["Key"] for each in listed}
        if (manifest := names.pop("manifest", None)) is None:
            return sorted(names)
        body = self.cloud.s3.get_object(Bucket=self.cloud.bucket, Key=manifest)["Body"].read()
        return sorted(names.keys() - set(decode_manifest(body).names))


async def kill_ingestion(cloud: Cloud, tenant: str, moment: int) -> tuple[PackedFixture, str, str]:
    """Return a store and its file, whose worker was killed. The task is delivered again."""
    alive = PackedFixture(cloud, tenant)
    store_id = await alive.create("Peru")
    file_id = await alive.add(store_id, "Llamas live in Peru.")
    tasks = list(alive.queue.ingestions)
    with suppress(Killed):
        await PackedFixture(cloud, tenant, alive, Death(moment)).work()
    alive.queue.ingestions[:] = tasks
    return alive, store_id, file_id


@pytest.mark.parametrize("moment", MOMENTS)
async def test_the_next_delivery_finishes_and_removing_the_file_leaves_no_block(
    cloud: Cloud, tenant: str, moment: int
) -> None:
    alive, store_id, file_id = await kill_ingestion(cloud, tenant, moment)

    CLOCK.move(UNUSED_SECONDS)
    await alive.work()
    assert (await alive.documents.get(store_id, file_id)).status == "completed"
    assert await alive.find(store_id, "llamas", search_mode="keyword") == ["Llamas live in Peru."]
    await alive.documents.delete(store_id, file_id)

    assert await alive.find(store_id, "llamas", search_mode="keyword") == []
    assert await alive.find(store_id, "peru", search_mode="keyword") == ["Peru"]
    assert alive.unnamed_objects(store_id) == []


@pytest.mark.parametrize("moment", MOMENTS)
async def test_a_store_that_is_deleted_after_a_killed_ingestion_leaves_nothing(
    cloud: Cloud, tenant: str, moment: int
) -> None:
    alive, store_id, _ = await kill_ingestion(cloud, tenant, moment)

    await alive.stores.delete(store_id)
    await alive.work()
    CLOCK.move(LEASE_SECONDS + 3)
    await alive.finish_deletions()

    assert alive.rest() == alive.unnamed_objects(store_id) == []


async def test_the_moments_cover_an_ingestion(cloud: Cloud, tenant: str) -> None:
    alive = PackedFixture(cloud, tenant)
    store_id = await alive.create("Peru")
    await alive.add(store_id, "Llamas live in Peru.")
    death = Death(1_000)

    await PackedFixture(cloud, tenant, alive, death).work()

    assert death.passed == MOMENTS[-1]
