"""Requests to the bucket of each operation of the packed index."""

from tests.store.conftest import Cloud
from tests.store.retrieval.entries import about, both, entry, near

from stint.retrieval.packed.index import PackedIndex
from stint.store.objects import BucketObjects


def process(cloud: Cloud, held_bytes: int = 64_000_000) -> PackedIndex:
    return PackedIndex(BucketObjects(cloud.objects), held_bytes)


async def test_a_small_store_is_read_once_and_then_only_its_manifest(cloud: Cloud, name: str) -> None:
    writer = process(cloud)
    cloud.forget()
    await writer.create(name, 2)
    assert cloud.calls == {"PutObject": 1}

    cloud.forget()
    await writer.upsert(name, [entry(f"{at}", (1, at), f"word {at}") for at in range(100)])
    assert cloud.calls == {"PutObject": 2}

    reader = process(cloud)
    for expected in (2, 1, 1):
        cloud.forget()
        for_each = {2: near((1, 0)), 1: both((1, 0), "word 7")}
        assert len(await reader.query(name, for_each[expected])) == 10
        assert cloud.calls == {"GetObject": expected}

    cloud.forget()
    await writer.delete(name, ["1", "2"])
    assert cloud.calls == {"GetObject": 2, "PutObject": 4, "DeleteObjects": 1, "ListObjectsV2": 1}


async def test_a_store_of_at_most_a_quarter_of_the_memory_is_held_with_its_texts(cloud: Cloud, name: str) -> None:
    index = process(cloud, 8_000_000)
    await index.create(name, 256)
    await index.upsert(name, [entry(f"{at:03}", [1.0, at, *[0.0] * 254], "word " * 200) for at in range(900)])

    cloud.forget()
    await index.query(name, near([1.0] * 256, 1))
    assert cloud.calls == {"GetObject": 2}

    cloud.forget()
    assert len(await index.query(name, near([1.0] * 256, 100))) == 100
    assert cloud.calls == {"GetObject": 1}


async def test_of_a_large_store_only_the_texts_that_were_found_are_read(cloud: Cloud, name: str) -> None:
    index = process(cloud, 4_000_000)
    await index.create(name, 256)
    await index.upsert(name, [entry(f"{at:03}", [1.0, at, *[0.0] * 254], "word " * 400) for at in range(500)])
    await index.query(name, near([1.0] * 256, 1))

    cloud.forget()
    await index.query(name, near([1.0] * 256, 1))
    assert cloud.calls == {"GetObject": 2}
    assert index.held_bytes < 600_000  # the texts have 1 MB


async def test_a_process_holds_no_more_than_it_may_and_still_finds_everything(cloud: Cloud, name: str) -> None:
    index = process(cloud, 500_000)
    await index.create(name, 256)
    for part in range(4):
        chunks = [entry(f"{part}{at:03}", [1.0, at, *[0.0] * 254], "word " * 200) for at in range(300)]
        await index.upsert(name, chunks)

    for _ in range(2):
        assert len(await index.query(name, about("word", 1_200))) == 1_200
        assert 0 < index.held_bytes <= 500_000


async def test_a_process_drops_blocks_of_a_store_that_it_no_longer_searches(cloud: Cloud, name: str) -> None:
    index = process(cloud, 400_000)
    for store in (name, f"{name}-2"):
        await index.create(store, 256)
        chunks = [entry(f"{at:03}", [1.0, at, *[0.0] * 254], "word " * 200) for at in range(300)]
        await index.upsert(store, chunks)
        await index.query(store, near([1.0] * 256, 1))

    cloud.forget()
    await index.query(f"{name}-2", near([1.0] * 256, 1))
    assert cloud.calls == {"GetObject": 2}


async def test_chunks_of_a_large_store_are_read_without_the_vectors_of_other_blocks(cloud: Cloud, name: str) -> None:
    index = process(cloud, 4_000_000)
    await index.create(name, 1_024)
    for part in range(4):
        chunks = [entry(f"{part}:{at:03}", [1.0, at, *[0.0] * 1_022], "word " * 200) for at in range(200)]
        await index.upsert(name, chunks)
    reader = process(cloud, 2_000_000)

    cloud.forget()
    assert len(await reader.get(name, [f"1:{at:03}" for at in range(20)])) == 20

    # The manifest; the keys of four blocks; a block, and the records.
    assert cloud.calls == {"GetObject": 7}
    assert reader.held_bytes < 2 * 200 * 4 * 1_024
    cloud.forget()
    assert len(await reader.get(name, [f"3:{at:03}" for at in range(20)])) == 20
    assert cloud.calls["GetObject"] <= 7


async def test_keys_that_are_longer_than_most_are_found(cloud: Cloud, name: str) -> None:
    index = process(cloud, 1_000)
    await index.create(name, 2)
    keys = [f"{'k' * 190}{at:03}" for at in range(100)]
    await index.upsert(name, [entry(key, (1, 0)) for key in keys])

    assert sorted(await process(cloud, 1_000).get(name, keys)) == keys
