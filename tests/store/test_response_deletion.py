import asyncio
import secrets
import time
from typing import Any

import pytest
from tests.store.conftest import Cloud
from tests.store.response_samples import Responder, ids_of

from stint.domain.errors import Interrupted, NotFound, NotMarkedDeleted
from stint.domain.openai.stored_responses import ResponseStatus


@pytest.fixture
def responder(cloud: Cloud, tenant: str) -> Responder:
    return Responder(cloud.store, tenant)


async def fill(responder: Responder) -> str:
    """Store a large response that ran in the background, with its stored stream."""
    response_id = await responder.begin(secrets.token_urlsafe(300_000), background=True)
    background = responder.store.background
    await responder.store.response_leases.acquire(responder.tenant, response_id, 30)
    for first in range(0, 60, 2):
        await background.put_events(responder.tenant, response_id, first, ["a", "b"])
    await background.put_events(responder.tenant, response_id, 60, [secrets.token_urlsafe(400_000)])
    await responder.append(response_id, 0, secrets.token_urlsafe(300_000), ResponseStatus.completed)
    await responder.responses.put_body(responder.tenant, response_id, b"picture")
    return response_id


async def delete(responder: Responder, response_id: str, deadline: float = float("inf")) -> bool:
    """Delete a response as a request does: marked first."""
    await responder.responses.mark_deleted(responder.tenant, response_id)
    return await responder.responses.delete(responder.tenant, response_id, deadline)


def unsealed(cloud: Cloud, tenant: str) -> list[dict[str, Any]]:
    return [item for item in cloud.items(tenant) if "sealed_at" not in item]


async def test_a_deleted_response_leaves_nothing(cloud: Cloud, responder: Responder) -> None:
    plain, large = (await responder.respond()).response_id, await fill(responder)
    assert len(cloud.blobs(responder.tenant)) == 4

    done = [await delete(responder, response_id) for response_id in (plain, large)]

    assert done == [True, True]
    assert unsealed(cloud, responder.tenant) == []
    assert cloud.blobs(responder.tenant) == []
    assert (await responder.responses.list(responder.tenant)).data == []


async def test_a_plain_response_leaves_no_seal_either(cloud: Cloud, responder: Responder) -> None:
    await delete(responder, (await responder.respond()).response_id)

    assert cloud.items(responder.tenant) == []


async def test_a_response_that_is_not_marked_is_not_deleted(cloud: Cloud, responder: Responder) -> None:
    response_id = await fill(responder)
    before = cloud.items(responder.tenant)

    with pytest.raises(NotMarkedDeleted, match=f"Response '{response_id}' is not marked"):
        await responder.responses.delete(responder.tenant, response_id)

    assert cloud.items(responder.tenant) == before


@pytest.mark.parametrize("ended", [False, True])
async def test_a_response_is_deleted_once(responder: Responder, ended: bool) -> None:
    response_id = (await responder.respond()).response_id if ended else await responder.begin()
    await delete(responder, response_id)

    for call in (delete, Responder.get):
        with pytest.raises(NotFound) as raised:
            await call(responder, response_id)
        assert raised.value.code == "response_not_found"


async def test_another_response_is_left_alone(responder: Responder) -> None:
    other = await responder.get(await fill(responder))

    await delete(responder, await fill(responder))

    assert await responder.get(other.header.response_id) == other
    assert (await responder.responses.list(responder.tenant)).data == [other]


async def test_the_writer_of_a_deleted_response_stores_nothing_more(cloud: Cloud, responder: Responder) -> None:
    response_id = await responder.begin()
    await responder.append(response_id, 0)

    began = int(time.time())
    await delete(responder, response_id)

    with pytest.raises(Interrupted):
        await responder.append(response_id, 1, secrets.token_urlsafe(500_000), ResponseStatus.completed)
    with pytest.raises(NotFound):
        await responder.seal(response_id)
    assert unsealed(cloud, responder.tenant) == []
    assert cloud.blobs(responder.tenant) == []
    for seal in cloud.items(responder.tenant):
        assert began + 3_600 <= int(seal["expires_at"]["N"]) <= time.time() + 3_600


@pytest.mark.parametrize("ended", [False, True])
@pytest.mark.parametrize("begun", [False, True])
async def test_the_worker_of_a_deleted_response_stores_nothing_more(
    cloud: Cloud, responder: Responder, ended: bool, begun: bool
) -> None:
    background, tenant = responder.store.background, responder.tenant
    leases = responder.store.response_leases
    response_id = await responder.begin(background=True)
    lease = await leases.acquire(tenant, response_id, 30)
    if begun:
        await background.put_events(tenant, response_id, 0, ["a", "b"])
    if ended:
        await responder.seal(response_id, ResponseStatus.cancelled)

    await delete(responder, response_id)

    with pytest.raises(Interrupted):
        await background.put_events(tenant, response_id, 2 if begun else 0, ["c"])
    with pytest.raises(Interrupted):
        await lease.renew(30)
    with pytest.raises(NotFound):
        await leases.acquire(tenant, response_id, 30)
    with pytest.raises(NotFound):
        await leases.cancel(tenant, response_id)
    assert [batch async for batch in background.events(tenant, response_id)] == []
    assert unsealed(cloud, tenant) == []


async def test_a_worker_that_writes_while_its_response_is_deleted_leaves_only_seals(
    cloud: Cloud, responder: Responder
) -> None:
    for _ in range(4):
        response_id = await responder.begin(background=True)
        await responder.store.response_leases.acquire(responder.tenant, response_id, 30)
        begun, interrupted = asyncio.Event(), asyncio.Event()
        writers = [
            asyncio.create_task(write(responder, response_id, stream, begun, interrupted)) for stream in (False, True)
        ]
        await begun.wait()

        await delete(responder, response_id)
        await asyncio.gather(*writers)

        assert interrupted.is_set()
        assert unsealed(cloud, responder.tenant) == []


async def write(
    responder: Responder, response_id: str, stream: bool, begun: asyncio.Event, interrupted: asyncio.Event
) -> None:
    try:
        for index in range(1_000):
            if stream:
                await responder.store.background.put_events(responder.tenant, response_id, index, ["event"])
            else:
                await responder.append(response_id, index)
            if index == 3:
                begun.set()
            await asyncio.sleep(0.005)
    except Interrupted:
        interrupted.set()


async def test_the_deletion_of_a_response_stops_at_its_deadline_and_goes_on_later(
    cloud: Cloud, responder: Responder
) -> None:
    response_id = await fill(responder)

    done = await delete(responder, response_id, time.monotonic())

    assert not done
    assert unsealed(cloud, responder.tenant)
    with pytest.raises(NotFound):
        await responder.get(response_id)
    assert ids_of((await responder.responses.list(responder.tenant)).data) == []
    assert await delete(responder, response_id)
    assert unsealed(cloud, responder.tenant) == []
    assert cloud.blobs(responder.tenant) == []
    assert await responder.responses.delete(responder.tenant, response_id)
    with pytest.raises(NotFound):
        await delete(responder, response_id)


async def test_a_stored_stream_is_deleted_25_batches_a_call(cloud: Cloud, responder: Responder) -> None:
    response_id = await fill(responder)
    cloud.forget()

    await delete(responder, response_id)

    assert cloud.calls["BatchWriteItem"] == 3  # two of the stream, and one of the header and the ending
    assert cloud.calls["DeleteItem"] == 1
