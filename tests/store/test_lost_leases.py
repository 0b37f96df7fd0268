"""A lease whose answer is lost is taken back: nobody knows of it, and all would wait until it lapses."""

from collections.abc import Awaitable, Callable

import pytest
from tests.clock import CLOCK
from tests.store.conftest import Cloud
from tests.store.record_samples import SessionFixture
from tests.store.response_samples import Responder, conversation

from stint.domain.errors import Conflict, StoreUnavailable
from stint.domain.ids import new_name

SECONDS = 30.0

Acquire = Callable[[float], Awaitable[object]]


async def of_session(cloud: Cloud, tenant: str) -> Acquire:
    session_fixture = await SessionFixture.create(cloud.store, tenant)
    return lambda seconds: session_fixture.acquire(seconds=seconds)


async def of_conversation(cloud: Cloud, tenant: str) -> Acquire:
    created = conversation()
    await cloud.store.conversations.create(tenant, created)
    leases = cloud.store.conversation_leases
    return lambda seconds: leases.acquire(tenant, created.id, new_name("resp"), seconds)


async def of_event(cloud: Cloud, tenant: str) -> Acquire:
    return lambda seconds: cloud.store.idempotency.acquire(tenant, "order-7", "", seconds)


async def of_response(cloud: Cloud, tenant: str) -> Acquire:
    response_id = await Responder(cloud.store, tenant).begin(background=True)
    return lambda seconds: cloud.store.response_leases.acquire(tenant, response_id, seconds)


@pytest.fixture(params=[of_session, of_conversation, of_event, of_response])
async def acquire(request: pytest.FixtureRequest, own_cloud: Cloud, tenant: str) -> Acquire:
    make: Callable[[Cloud, str], Awaitable[Acquire]] = request.param
    return await make(own_cloud, tenant)


@pytest.mark.parametrize("lapsed", [False, True])
async def test_a_lease_whose_answer_never_came_is_free_at_once(
    own_cloud: Cloud, acquire: Acquire, lapsed: bool
) -> None:
    if lapsed:
        await acquire(-0.001)

    with own_cloud.proxy.failing("UpdateItem", ":old_id" if lapsed else "", lost=True, times=1):  # noqa: SIM117
        with pytest.raises(StoreUnavailable):
            await acquire(SECONDS)

    await acquire(SECONDS)


async def test_a_lease_that_cannot_be_taken_back_lapses(own_cloud: Cloud, acquire: Acquire) -> None:
    with own_cloud.proxy.failing("UpdateItem", lost=True, times=1), own_cloud.proxy.failing("UpdateItem", ":held"):  # noqa: SIM117
        with pytest.raises(StoreUnavailable):
            await acquire(SECONDS)
    with pytest.raises(Conflict):
        await acquire(SECONDS)

    CLOCK.move(SECONDS)

    await acquire(SECONDS)
