import time
from random import Random

import pytest
from tests.clock import CLOCK
from tests.store.conftest import Cloud

from stint.domain.errors import NotFound, NotMarkedDeleted
from stint.domain.ids import new_name
from stint.domain.openai.files import FileObject, FilePurpose
from stint.store.store import Store

LARGE = Random(7).randbytes(50_000)


def make_file(content: bytes, **fields: object) -> FileObject:
    own = {"id": new_name("file", "-"), "filename": "a.txt", "purpose": "assistants", "created_at": 1}
    return FileObject.model_validate(own | {"bytes": len(content)} | fields)


async def put(store: Store, tenant: str, content: bytes = b"Llamas hum.", **fields: object) -> FileObject:
    file = make_file(content, **fields)
    await store.files.create(tenant, file, content)
    return file


async def content_of(store: Store, tenant: str, file_id: str) -> bytes:
    stored = await store.files.open(tenant, file_id)
    return b"".join([piece async for piece in store.files.read(stored)])


@pytest.mark.parametrize("size", [1, 500, 3_000, 5_000, 100_000, 4_400_000])
@pytest.mark.parametrize("letters", [1, 251])
async def test_a_file_reads_back_as_it_was_written(store: Store, tenant: str, size: int, letters: int) -> None:
    content = bytes(place * place % letters for place in range(size))

    file = await put(store, tenant, content)

    assert await store.files.get(tenant, file.id) == file
    assert await content_of(store, tenant, file.id) == content


async def test_a_small_file_costs_one_write_and_a_large_one_an_object_more(cloud: Cloud, tenant: str) -> None:
    await put(cloud.store, tenant, b"x" * 500)
    assert (cloud.calls, cloud.units["PutItem"]) == ({"PutItem": 1}, 1)
    cloud.forget()

    file = await put(cloud.store, tenant, LARGE)
    assert (cloud.calls, cloud.units["PutItem"]) == ({"PutItem": 1, "PutObject": 1}, 1)
    cloud.forget()

    await content_of(cloud.store, tenant, file.id)
    assert cloud.calls == {"GetItem": 1, "GetObject": 1}


async def test_a_deleted_file_leaves_nothing(cloud: Cloud, tenant: str) -> None:
    files = cloud.store.files
    small, large = await put(cloud.store, tenant), await put(cloud.store, tenant, LARGE)

    for file in (small, large):
        with pytest.raises(NotMarkedDeleted):
            await files.delete(tenant, file.id)
        await files.mark_deleted(tenant, file.id)
        with pytest.raises(NotFound):
            await files.get(tenant, file.id)
        await files.delete(tenant, file.id)
        await files.delete(tenant, file.id)

    assert cloud.items(tenant) == []
    assert cloud.blobs(tenant) == []


async def test_an_expired_file_is_hidden_at_once(cloud: Cloud, tenant: str) -> None:
    files = cloud.store.files
    content = LARGE
    now = int(time.time())
    file = await put(cloud.store, tenant, content, expires_at=now + 3_600)
    kept = await put(cloud.store, tenant, content)
    assert await files.get(tenant, file.id) == file

    CLOCK.move(3_700)

    with pytest.raises(NotFound):
        await files.get(tenant, file.id)
    assert (await files.list(tenant)).data == [kept]
    assert set(await files.get_many(tenant, [file.id, kept.id, "file-x", "../x"])) == {kept.id}
    expiring = [key for key in cloud.blobs(tenant) if key.startswith("expiring/")]
    assert len(expiring) == 1


async def test_files_are_listed_in_pages_by_creation_and_purpose(store: Store, tenant: str) -> None:
    purposes: list[FilePurpose] = ["assistants", "vision"]
    made = [await put(store, tenant, purpose=purposes[number % 2]) for number in range(23)]

    for order, expected in (("asc", made), ("desc", made[::-1])):
        found, after, more = [], None, True
        while more:
            page = await store.files.list(tenant, after=after, limit=5, order=order)  # type: ignore[arg-type]
            found += page.data
            after, more = page.data[-1].id, page.has_more
        assert found == expected
    visions = await store.files.list(tenant, limit=3, purpose="vision")
    assert (visions.data, visions.has_more) == (made[1::2][:-4:-1], True)


async def test_a_list_does_not_start_after_a_file_that_does_not_exist(store: Store, tenant: str) -> None:
    for after in (new_name("file", "-"), "x", "file-" + "g" * 32):
        with pytest.raises(NotFound):
            await store.files.list(tenant, after=after)


async def test_a_damaged_object_is_an_error_and_never_served(cloud: Cloud, tenant: str) -> None:
    file = await put(cloud.store, tenant, LARGE)
    [key] = cloud.blobs(tenant)
    cloud.s3.put_object(Bucket=cloud.bucket, Key=key, Body=b"other")

    with pytest.raises(Exception, match="damaged"):
        await content_of(cloud.store, tenant, file.id)
