import time

import pytest
from tests.clock import CLOCK
from tests.store.conftest import Cloud
from tests.store.record_samples import SessionFixture, agent, session

from stint.domain.errors import NotFound
from stint.domain.ids import new_id
from stint.domain.paging import MAX_BYTES, Window
from stint.store.items import size
from stint.store.sessions import LastTurn
from stint.store.store import Store


@pytest.fixture
async def agent_id(store: Store, tenant: str) -> str:
    created = agent()
    await store.agents.create(tenant, created)
    return created.agent_id


@pytest.mark.parametrize("name", ["talk", "", "é" * 100, "é" * 101, "long " * 1_000, "x" * 500_000])
async def test_a_session_reads_back_as_it_was_created(store: Store, tenant: str, agent_id: str, name: str) -> None:
    begun = session(name)
    expires_at = int(time.time()) + 60

    await store.sessions.create(tenant, agent_id, begun, expires_at)

    record = await store.sessions.get(tenant, agent_id, begun.session_id)
    assert (record.session_id, record.name, record.started_at) == (begun.session_id, name, begun.started_at)
    assert record.expires_at == expires_at
    assert record.last is None
    assert record.lease_turn is None
    assert (await store.sessions.list(tenant, agent_id, Window())).data == [begun]
    assert (await store.turns.history(tenant, agent_id, begun.session_id)).turns == []


async def test_the_record_of_a_session_stays_under_one_unit(cloud: Cloud) -> None:
    tenant = new_id().replace("-", "")  # the longest name
    created, begun = agent(), session("é" * 100)
    await cloud.store.agents.create(tenant, created)
    await cloud.store.sessions.create(tenant, created.agent_id, begun, int(time.time()) + 60)
    ids = (tenant, created.agent_id, begun.session_id)
    lease = await cloud.store.session_leases.acquire(*ids, new_id(), resume=False, seconds=30)
    lease.last = LastTurn(lease.turn_id, 9_999)
    await lease.release()
    await cloud.store.session_leases.acquire(*ids, new_id(), resume=False, seconds=30)

    [item] = [item for item in cloud.items(tenant) if item["sk"]["S"] == "state"]

    assert "lease_id" in item
    assert "last_turn" in item
    assert size({name: next(iter(value.values())) for name, value in item.items()}) < 1_000


async def test_a_session_costs_one_transaction_and_one_read(cloud: Cloud, tenant: str, agent_id: str) -> None:
    cloud.forget()

    await cloud.store.sessions.create(tenant, agent_id, session(), None)

    assert cloud.calls == {"TransactWriteItems": 1, "GetItem": 1}
    assert cloud.units == {"TransactWriteItems": 6, "GetItem": 1}


@pytest.mark.parametrize("removed", [False, True])
async def test_a_session_of_a_deleted_agent_is_not_created(
    cloud: Cloud, tenant: str, agent_id: str, removed: bool
) -> None:
    await cloud.store.agents.mark_deleted(tenant, agent_id)
    if removed:
        await cloud.store.agents.remove(tenant, agent_id)
    before = cloud.items(tenant)

    with pytest.raises(NotFound) as raised:
        await cloud.store.sessions.create(tenant, agent_id, session("x" * 5_000), None)

    assert raised.value.code == "agent_not_found"
    assert cloud.items(tenant) == before


async def test_a_session_of_another_agent_is_not_found(store: Store, tenant: str, agent_id: str) -> None:
    begun = session()
    await store.sessions.create(tenant, agent_id, begun, None)

    with pytest.raises(NotFound):
        await store.sessions.get(tenant, new_id(), begun.session_id)
    with pytest.raises(NotFound):
        await store.sessions.get("other", agent_id, begun.session_id)


async def test_sessions_are_listed_in_creation_order_without_the_deleted_and_the_expired(
    store: Store, tenant: str, agent_id: str
) -> None:
    past = int(time.time()) - 1
    begun = [session(f"talk {number}" * (1 + number * 20)) for number in range(9)]
    for number, one in enumerate(begun):
        await store.sessions.create(tenant, agent_id, one, past if number % 3 == 1 else None)
    for one in begun[2::3]:
        await store.sessions.mark_deleted(tenant, agent_id, one.session_id)

    page = await store.sessions.list(tenant, agent_id, Window(0, 2))

    assert page.data == begun[0:4:3]
    assert page.has_more
    assert (await store.sessions.list(tenant, agent_id, Window(2))).data == begun[6:7]
    found = [one async for one in store.sessions.ids(tenant, agent_id)]
    assert found == [one.session_id for one in begun]


@pytest.mark.parametrize(("name", "count"), [("name " * 300_000, 2), ("\x01" * 250_000, 2)])
async def test_a_list_of_long_names_ends_before_it_is_too_large(
    store: Store, tenant: str, agent_id: str, name: str, count: int
) -> None:
    begun = [session(name) for _ in range(4)]
    for one in begun:
        await store.sessions.create(tenant, agent_id, one, None)

    page = await store.sessions.list(tenant, agent_id, Window())

    assert page.has_more
    assert page.data == begun[:count]
    assert sum(len(one.model_dump_json()) for one in page.data) <= MAX_BYTES


async def test_an_expired_session_is_gone_from_every_read_at_once(store: Store, tenant: str) -> None:
    session_fixture = await SessionFixture.create(store, tenant, expires_at=int(time.time()) + 600)
    lease = await session_fixture.begin()
    CLOCK.move(600)

    assert (await session_fixture.store.sessions.list(tenant, session_fixture.agent_id, Window())).data == []

    for read in (
        lambda: store.sessions.get(*session_fixture.ids),
        lambda: store.sessions.mark_deleted(*session_fixture.ids),
        lambda: store.turns.history(*session_fixture.ids),
        lambda: store.turns.get(*session_fixture.ids, lease.turn_id),
        lambda: session_fixture.acquire(),
        lambda: session_fixture.acquire(lease.turn_id, resume=True),
    ):
        with pytest.raises(NotFound) as raised:
            await read()
        assert raised.value.code == "session_not_found"


async def test_every_record_of_a_session_expires_with_it(cloud: Cloud, tenant: str) -> None:
    expires_at = int(time.time()) + 600
    session_fixture = await SessionFixture.create(cloud.store, tenant, expires_at)

    await session_fixture.turn()

    records = [item for item in cloud.items(tenant) if "#session" in item["pk"]["S"]]
    assert len(records) == 4
    assert {item["expires_at"]["N"] for item in records} == {str(expires_at)}


async def test_a_marked_session_is_gone_from_every_read(store: Store, tenant: str) -> None:
    session_fixture = await SessionFixture.create(store, tenant)

    await store.sessions.mark_deleted(*session_fixture.ids)
    await store.sessions.mark_deleted(*session_fixture.ids)

    assert (await store.sessions.list(tenant, session_fixture.agent_id, Window())).data == []
    with pytest.raises(NotFound):
        await store.sessions.get(*session_fixture.ids)
    with pytest.raises(NotFound):
        await session_fixture.acquire()


async def test_a_removed_session_cannot_be_marked(store: Store, tenant: str) -> None:
    session_fixture = await SessionFixture.create(store, tenant)

    await store.session_records.remove(*session_fixture.ids)

    with pytest.raises(NotFound):
        await store.sessions.mark_deleted(*session_fixture.ids)
