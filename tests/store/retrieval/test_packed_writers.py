"""Several writers of one packed index, and readers beside them."""

import asyncio
from collections.abc import Sequence

import pytest
from tests.clock import CLOCK
from tests.store.conftest import Cloud
from tests.store.retrieval.entries import entry, keys, near

from stint.domain.errors import Conflict, NotFound, StoreUnavailable, TooLarge
from stint.retrieval.objects import ObjectStore
from stint.retrieval.packed.index import PackedIndex
from stint.retrieval.packed.manifest import decode_manifest
from stint.retrieval.packed.unused import UNUSED_SECONDS, WRITE_SECONDS
from stint.store.objects import BucketObjects

ALL = near((1, 0), 1_000)


@pytest.fixture
def objects(cloud: Cloud) -> BucketObjects:
    return BucketObjects(cloud.objects)


def process(objects: ObjectStore) -> PackedIndex:
    """Return the index of another process, which remembers nothing."""
    return PackedIndex(objects, 64_000_000)


def listed(cloud: Cloud, name: str) -> list[str]:
    found = cloud.s3.list_objects_v2(Bucket=cloud.bucket, Prefix=f"packed/{name}/").get("Contents", [])
    return [each["Key"].rpartition("/")[2] for each in found]


def in_manifest(cloud: Cloud, name: str) -> list[str]:
    body = cloud.s3.get_object(Bucket=cloud.bucket, Key=f"packed/{name}/manifest")["Body"].read()
    return decode_manifest(body).names


async def test_concurrent_writers_lose_none_of_each_others_chunks(
    cloud: Cloud, objects: BucketObjects, name: str
) -> None:
    await process(objects).create(name, 2)

    async def write(writer: int) -> None:
        mine = process(objects)
        for at in range(6):
            await mine.upsert(name, [entry(f"{writer}-{at}-{each}", (1, 0)) for each in range(3)])
        await mine.delete(name, [f"{writer}-0-{each}" for each in range(3)])

    await asyncio.gather(*map(write, range(8)))

    expected = sorted(f"{writer}-{at}-{each}" for writer in range(8) for at in range(1, 6) for each in range(3))
    assert keys(await process(objects).query(name, ALL)) == expected
    assert sorted(listed(cloud, name)) == sorted([*in_manifest(cloud, name), "manifest"])


async def test_a_search_beside_merges_finds_everything_that_was_there(objects: BucketObjects, name: str) -> None:
    writer, reader = process(objects), process(objects)
    await writer.create(name, 2)
    written = 0

    async def write() -> None:
        nonlocal written
        for at in range(40):
            await writer.upsert(name, [entry(f"{at:02}", (1, 0))])
            written = at + 1

    writing = asyncio.create_task(write())
    while not writing.done():
        before = written
        found = keys(await reader.query(name, ALL))
        assert found == [f"{at:02}" for at in range(len(found))]
        assert len(found) >= before
    await writing


class LostAnswers:
    """Objects whose next replacement succeeds, but seems to have failed: as `None`, or as an error."""

    def __init__(self, objects: BucketObjects) -> None:
        self._objects = objects
        self.lost: list[Exception | None] = []

    async def replace(self, key: str, body: bytes, etag: str) -> str | None:
        answer = await self._objects.replace(key, body, etag)
        if not self.lost:
            return answer
        if error := self.lost.pop():
            raise error
        return None

    async def read(self, key: str, known: str = "") -> tuple[bytes, str] | None:
        return await self._objects.read(key, known)

    async def read_range(self, key: str, start: int, length: int) -> bytes:
        return await self._objects.read_range(key, start, length)

    async def write(self, key: str, body: bytes) -> None:
        await self._objects.write(key, body)

    async def create(self, key: str, body: bytes) -> str | None:
        return await self._objects.create(key, body)

    async def delete(self, keys: Sequence[str]) -> None:
        await self._objects.delete(keys)

    async def keys(self, prefix: str) -> list[str]:
        return await self._objects.keys(prefix)

    async def delete_all(self, prefix: str) -> None:
        await self._objects.delete_all(prefix)


async def test_a_repeated_write_whose_first_answer_was_lost_meets_its_own_block(
    cloud: Cloud, objects: BucketObjects, name: str
) -> None:
    lost = LostAnswers(objects)
    index = process(lost)
    await index.create(name, 2)
    lost.lost = [None]

    await index.upsert(name, [entry("a", (1, 0))])

    assert len(in_manifest(cloud, name)) == 1
    assert keys(await index.query(name, ALL)) == ["a"]


async def test_a_block_stays_if_it_is_unknown_whether_the_manifest_has_it(
    cloud: Cloud, objects: BucketObjects, name: str
) -> None:
    lost = LostAnswers(objects)
    index = process(lost)
    await index.create(name, 2)
    lost.lost = [StoreUnavailable("The bucket does not respond. Try again.", unsure=True)]

    with pytest.raises(StoreUnavailable):
        await index.upsert(name, [entry("a", (1, 0))])

    await index.upsert(name, [entry("a", (1, 0))])
    assert keys(await process(objects).query(name, ALL)) == ["a"]


async def test_a_writer_of_a_dropped_index_leaves_nothing(cloud: Cloud, objects: BucketObjects, name: str) -> None:
    late = process(objects)
    await late.create(name, 2)
    await late.upsert(name, [entry("a", (1, 0))])
    await process(objects).drop(name)

    with pytest.raises(NotFound):
        await late.upsert(name, [entry("b", (1, 0))])

    assert listed(cloud, name) == []


async def test_a_writer_does_not_add_to_an_index_that_was_created_again(
    cloud: Cloud, objects: BucketObjects, name: str
) -> None:
    late, other = process(objects), process(objects)
    await late.create(name, 2)
    await other.drop(name)
    await other.create(name, 2)

    await late.upsert(name, [entry("b", (1, 0))])  # reads the new manifest

    assert keys(await other.query(name, ALL)) == ["b"]


async def test_small_blocks_are_merged_and_the_old_ones_deleted(
    cloud: Cloud, objects: BucketObjects, name: str
) -> None:
    index = process(objects)
    await index.create(name, 2)

    for at in range(100):
        await index.upsert(name, [entry(f"{at:03}", (1, 0), f"text {at}")])

    assert len(in_manifest(cloud, name)) < 24
    assert sorted(listed(cloud, name)) == sorted([*in_manifest(cloud, name), "manifest"])
    assert len(keys(await index.query(name, ALL))) == 100


async def test_deleted_chunks_take_no_space_for_long(cloud: Cloud, objects: BucketObjects, name: str) -> None:
    index = process(objects)
    await index.create(name, 2)
    await index.upsert(name, [entry("kept", (1, 0))])

    for at in range(12):
        written = [f"{at}-{each}" for each in range(300)]
        await index.upsert(name, [entry(key, (1, 0), "text " * 200) for key in written])
        await index.delete(name, written)

    assert keys(await index.query(name, ALL)) == ["kept"]
    sizes = [
        each["Size"] for each in cloud.s3.list_objects_v2(Bucket=cloud.bucket, Prefix=f"packed/{name}/")["Contents"]
    ]
    assert sum(sizes) < 50_000


async def test_a_deletion_rewrites_only_blocks_with_deleted_chunks(
    cloud: Cloud, objects: BucketObjects, name: str
) -> None:
    index = process(objects)
    await index.create(name, 2)
    for part in "abc":
        await index.upsert(name, [entry(f"{part}{at:04}", (1, 0), "text " * 300) for at in range(700)])
    before = in_manifest(cloud, name)

    await index.delete(name, [f"b{at:04}" for at in range(600)])

    after = in_manifest(cloud, name)
    assert (after[0], after[-1]) == (before[0], before[-1])
    assert len(before) == len(after) == 3
    assert len(keys(await index.query(name, near((1, 0), 5_000)))) == 1_500


async def test_an_index_over_its_limit_is_refused_until_chunks_are_deleted(
    cloud: Cloud, objects: BucketObjects, name: str
) -> None:
    index = PackedIndex(objects, 64_000_000, store_bytes=300_000)
    await index.create(name, 2)
    first = [entry(f"a{at}", (1, 0), "text " * 100) for at in range(350)]
    await index.upsert(name, first)
    more = [entry(f"b{at}", (1, 0), "text " * 100) for at in range(200)]

    with pytest.raises(TooLarge, match="Use the index `s3-vectors`"):
        await index.upsert(name, more)

    assert len(keys(await index.query(name, ALL))) == 350
    assert sorted(listed(cloud, name)) == sorted([*in_manifest(cloud, name), "manifest"])
    await index.delete(name, [each.key for each in first[:200]])
    await index.upsert(name, more)
    assert len(keys(await index.query(name, ALL))) == 350


async def test_a_deleted_chunk_of_an_old_block_stays_deleted_when_newer_blocks_are_merged(
    cloud: Cloud, objects: BucketObjects, name: str
) -> None:
    index = process(objects)
    await index.create(name, 2)
    await index.upsert(name, [entry(f"old{at}", (1, 0), "text " * 3_000) for at in range(100)])
    await index.delete(name, ["old7"])
    blocks = []
    for at in range(12):
        await index.upsert(name, [entry(f"new{at}", (1, 0))])
        blocks.append(len(in_manifest(cloud, name)))

    assert blocks != sorted(blocks)  # a merge made them fewer
    for reader in (index, process(objects)):
        found = keys(await reader.query(name, ALL))
        assert len(found) == 111
        assert "old7" not in found


async def test_nothing_is_left_of_a_deleted_chunk(cloud: Cloud, objects: BucketObjects, name: str) -> None:
    index = process(objects)
    await index.create(name, 2)
    await index.upsert(name, [entry("a", (1, 0), "quince"), entry("b", (0, 1), "pear")])
    await index.upsert(name, [entry("c", (1, 1), "fig"), entry("d", (1, 1), "quince")])
    await index.update_attributes(name, ["a"], {"year": 2026})

    await process(objects).delete(name, ["a", "d"])

    assert texts_in(cloud, name, "quince", "pear", "fig") == {"pear", "fig"}
    assert sorted(listed(cloud, name)) == sorted([*in_manifest(cloud, name), "manifest"])
    for reader in (index, process(objects)):
        assert keys(await reader.query(name, ALL)) == ["c", "b"]


async def test_nothing_is_left_of_a_chunk_that_is_deleted_beside_merges(
    cloud: Cloud, objects: BucketObjects, name: str
) -> None:
    await process(objects).create(name, 2)

    async def write(writer: int) -> None:
        mine = process(objects)
        for at in range(9):
            await mine.upsert(name, [entry(f"{writer}-{at}", (1, 0), f"quince{writer}x{at}")])
        await mine.delete(name, [f"{writer}-{at}" for at in range(8)])

    await asyncio.gather(*map(write, range(4)))

    written = [f"quince{writer}x{at}" for writer in range(4) for at in range(9)]
    assert texts_in(cloud, name, *written) == {f"quince{writer}x8" for writer in range(4)}


async def test_a_deletion_that_was_stopped_is_finished_by_a_repetition(
    cloud: Cloud, objects: BucketObjects, name: str
) -> None:
    index = process(objects)
    await index.create(name, 2)
    await index.upsert(name, [entry("a", (1, 0), "quince"), entry("b", (0, 1), "pear")])
    await index._append(name, [((), ["a"])], 2)
    assert keys(await process(objects).query(name, ALL)) == ["b"]

    await process(objects).delete(name, ["a"])

    assert texts_in(cloud, name, "quince", "pear") == {"pear"}


def texts_in(cloud: Cloud, name: str, *texts: str) -> set[str]:
    """Return those of the texts that an object of the index has."""
    bodies = [
        cloud.s3.get_object(Bucket=cloud.bucket, Key=f"packed/{name}/{each}")["Body"].read()
        for each in listed(cloud, name)
    ]
    return {text for text in texts if any(text.encode() in body for body in bodies)}


class Killed(BaseException):
    """The process is dead."""


class KilledWriter(LostAnswers):
    """Objects of a process that is killed before it replaces a manifest, or after `seconds` of sleep goes on."""

    seconds: float | None = None

    async def replace(self, key: str, body: bytes, etag: str) -> str | None:
        if self.seconds is None:
            raise Killed
        CLOCK.move(self.seconds)
        return await super().replace(key, body, etag)


async def killed_while_writing(objects: BucketObjects, name: str) -> None:
    with pytest.raises(Killed):
        await process(KilledWriter(objects)).upsert(name, [entry("lost", (1, 0))])


async def test_a_block_of_a_killed_writer_is_removed_by_a_later_deletion(
    cloud: Cloud, objects: BucketObjects, name: str
) -> None:
    index = process(objects)
    await index.create(name, 2)
    await index.upsert(name, [entry("a", (1, 0)), entry("b", (1, 0))])
    await killed_while_writing(objects, name)
    assert len(listed(cloud, name)) == 3

    await index.delete(name, ["a"])
    assert len(listed(cloud, name)) > len(in_manifest(cloud, name)) + 1  # it might still be written
    CLOCK.move(UNUSED_SECONDS)
    await process(objects).delete(name, ["unknown"])

    assert sorted(listed(cloud, name)) == sorted([*in_manifest(cloud, name), "manifest"])
    assert keys(await index.query(name, ALL)) == ["b"]


async def test_blocks_of_killed_writers_are_removed_with_a_merge(
    cloud: Cloud, objects: BucketObjects, name: str
) -> None:
    index = process(objects)
    await index.create(name, 2)
    await killed_while_writing(objects, name)
    CLOCK.move(UNUSED_SECONDS)

    for at in range(8):
        await index.upsert(name, [entry(f"{at}", (1, 0))])

    assert sorted(listed(cloud, name)) == sorted([*in_manifest(cloud, name), "manifest"])
    assert len(keys(await index.query(name, ALL))) == 8


async def test_a_dropped_index_leaves_no_block_of_a_killed_writer(
    cloud: Cloud, objects: BucketObjects, name: str
) -> None:
    index = process(objects)
    await index.create(name, 2)
    await killed_while_writing(objects, name)

    await index.drop(name)

    assert listed(cloud, name) == []


async def test_a_writer_that_slept_adds_no_block_that_may_be_deleted_already(
    cloud: Cloud, objects: BucketObjects, name: str
) -> None:
    index, sleeper = process(objects), KilledWriter(objects)
    await index.create(name, 2)
    sleeper.seconds = WRITE_SECONDS
    late = process(sleeper)
    await late.upsert(name, [entry("a", (1, 0))])  # it slept when nothing could be checked any more
    await index.upsert(name, [entry("b", (1, 0))])

    with pytest.raises(Conflict, match="took more than"):
        await late.upsert(name, [entry("c", (1, 0))])  # its manifest is outdated, so it tries again after the sleep

    assert sorted(listed(cloud, name)) == sorted([*in_manifest(cloud, name), "manifest"])
    assert keys(await index.query(name, ALL)) == ["a", "b"]
