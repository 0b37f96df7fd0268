import asyncio
import re
import secrets
import time
from contextlib import suppress
from typing import Any

import pytest
from tests.clock import CLOCK
from tests.store.conftest import Cloud
from tests.store.record_samples import SessionFixture, agent, header, pending, record, session

from stint.domain.errors import Interrupted, NotFound, NotMarkedDeleted
from stint.domain.paging import Window
from stint.domain.run_outcome import RunStatus
from stint.store.session_leases import SessionLease
from stint.store.sessions import LastTurn
from stint.store.store import Store

NEVER = float("inf")


async def delete_session(store: Store, ids: tuple[str, str, str], deadline: float = NEVER) -> bool:
    """Delete a session as a request does: marked first, which raises for an expired one once it is marked."""
    with suppress(NotFound):
        await store.sessions.mark_deleted(*ids)
    return await store.deletion.delete_session(*ids, deadline)


async def delete_agent(store: Store, tenant: str, agent_id: str, deadline: float = NEVER) -> bool:
    await store.agents.mark_deleted(tenant, agent_id)
    return await store.deletion.delete_agent(tenant, agent_id, deadline)


def kinds(cloud: Cloud, tenant: str) -> set[str]:
    """The kinds of records that a tenant has."""
    return {re.split("[:.]", item["pk"]["S"].split("#")[1])[0] for item in cloud.items(tenant)}


async def fill(session_fixture: SessionFixture) -> None:
    """Add a small turn, a large one, and one that waits for its client."""
    for text in ("short", secrets.token_urlsafe(500_000)):
        await session_fixture.turn(text)
    lease = await session_fixture.begin()
    await session_fixture.store.turns.put_pending(lease, pending(lease.turn_id))
    await session_fixture.store.turns.append(lease, 0, record(lease.turn_id, status=RunStatus.awaiting_input))
    lease.last = LastTurn(lease.turn_id, 1)
    await lease.release()


async def test_what_is_not_marked_is_not_deleted(cloud: Cloud, tenant: str) -> None:
    session_fixture = await SessionFixture.create(cloud.store, tenant)
    await fill(session_fixture)
    before = cloud.items(tenant)

    with pytest.raises(NotMarkedDeleted, match=f"Session '{session_fixture.session_id}' is not marked"):
        await cloud.store.deletion.delete_session(*session_fixture.ids, NEVER)
    with pytest.raises(NotMarkedDeleted, match=f"Agent '{session_fixture.agent_id}' is not marked"):
        await cloud.store.deletion.delete_agent(tenant, session_fixture.agent_id, NEVER)

    assert cloud.items(tenant) == before


@pytest.mark.parametrize("expires_in", [None, 600, 60])
async def test_a_deleted_session_leaves_nothing(cloud: Cloud, tenant: str, expires_in: int | None) -> None:
    session_fixture = await SessionFixture.create(cloud.store, tenant, expires_in and int(time.time()) + expires_in)
    await fill(session_fixture)
    assert cloud.blobs(tenant)
    CLOCK.move(60)

    done = await delete_session(cloud.store, session_fixture.ids)

    assert done
    assert kinds(cloud, tenant) == {"agent"}
    assert cloud.blobs(tenant) == []
    assert await cloud.store.deletion.delete_session(*session_fixture.ids, NEVER)


async def test_another_session_is_left_alone(cloud: Cloud, tenant: str) -> None:
    session_fixture, other = (
        await SessionFixture.create(cloud.store, tenant),
        await SessionFixture.create(cloud.store, tenant),
    )
    for one in (session_fixture, other):
        await fill(one)
    before = await other.turns()

    await delete_session(cloud.store, session_fixture.ids)

    assert await other.turns() == before


async def test_the_writer_of_a_running_turn_stores_nothing_more(cloud: Cloud, tenant: str) -> None:
    session_fixture = await SessionFixture.create(cloud.store, tenant)
    lease = await session_fixture.begin(secrets.token_urlsafe(500_000))
    await cloud.store.turns.append(lease, 0, record(lease.turn_id))

    began = int(time.time())
    await delete_session(cloud.store, session_fixture.ids)

    with pytest.raises(Interrupted):
        await cloud.store.turns.append(lease, 1, record(lease.turn_id, secrets.token_urlsafe(500_000)))
    with pytest.raises(Interrupted):
        await cloud.store.turns.put_pending(lease, pending(lease.turn_id))
    with pytest.raises(Interrupted):
        await lease.renew(30)
    await cloud.store.turns.delete_pending(lease, lease.turn_id)
    lease.last = LastTurn(lease.turn_id, 1)
    await lease.release()
    seals = [item for item in cloud.items(tenant) if "#agent" not in item["pk"]["S"]]
    assert len(seals) == 3
    for seal in seals:
        assert "doc" not in seal
        assert began + 3_600 <= int(seal["expires_at"]["N"]) <= time.time() + 3_600
    assert cloud.blobs(tenant) == []
    assert await session_fixture.turns() == []


async def test_a_turn_whose_header_was_not_written_yet_never_begins(cloud: Cloud, tenant: str) -> None:
    session_fixture = await SessionFixture.create(cloud.store, tenant)
    lease = await session_fixture.acquire()

    await delete_session(cloud.store, session_fixture.ids)

    with pytest.raises(Interrupted):
        await cloud.store.turns.put_header(lease, header(lease.turn_id, session_fixture.session_id))
    with pytest.raises(Interrupted):
        await cloud.store.turns.append(lease, 0, record(lease.turn_id))


async def test_a_resumed_turn_is_stopped_too(cloud: Cloud, tenant: str) -> None:
    session_fixture = await SessionFixture.create(cloud.store, tenant)
    turn_id = await session_fixture.turn(status=RunStatus.awaiting_input)
    lease = await session_fixture.acquire(turn_id, resume=True)

    await delete_session(cloud.store, session_fixture.ids)

    with pytest.raises(Interrupted):
        await cloud.store.turns.append(lease, 1, record(turn_id))


async def test_a_deletion_while_a_turn_writes_leaves_only_seals(cloud: Cloud, tenant: str) -> None:
    for _ in range(5):
        session_fixture = await SessionFixture.create(cloud.store, tenant)
        lease = await session_fixture.begin()
        begun, interrupted = asyncio.Event(), asyncio.Event()
        writer = asyncio.create_task(write(session_fixture, lease, begun, interrupted))
        await begun.wait()

        await delete_session(cloud.store, session_fixture.ids)
        await writer

        assert interrupted.is_set()
        left = [item for item in cloud.items(tenant) if session_fixture.session_id in item["pk"]["S"] + item["sk"]["S"]]
        assert len(left) == 3
        assert all("sealed_at" in item for item in left)


async def write(
    session_fixture: SessionFixture, lease: SessionLease, begun: asyncio.Event, interrupted: asyncio.Event
) -> None:
    try:
        for index in range(1_000):
            await session_fixture.store.turns.append(lease, index, record(lease.turn_id))
            if index == 3:
                begun.set()
            await asyncio.sleep(0.01)
    except Interrupted:
        interrupted.set()


async def test_a_deletion_stops_at_its_deadline_and_goes_on_later(own_cloud: Cloud, tenant: str) -> None:
    session_fixture = await SessionFixture.create(own_cloud.store, tenant)
    pk = f"{tenant}#session:{session_fixture.agent_id}:{session_fixture.session_id}"
    own_cloud.write({"pk": pk, "sk": f"{number:04d}"} for number in range(60))

    deadline = time.monotonic() + 600

    def dawdle(_: Any) -> None:
        CLOCK.move_to(round((time.time() + deadline - time.monotonic()) * 1000))

    with own_cloud.proxy.editing("BatchWriteItem", answer=dawdle):
        done = await delete_session(own_cloud.store, session_fixture.ids, deadline)

    assert not done
    assert 0 < len([item for item in own_cloud.items(tenant) if item["pk"]["S"] == pk]) < 60
    with pytest.raises(NotFound):
        await own_cloud.store.sessions.get(*session_fixture.ids)
    assert await own_cloud.store.deletion.delete_session(*session_fixture.ids, NEVER)
    assert kinds(own_cloud, tenant) == {"agent"}


async def test_a_deleted_agent_leaves_nothing(cloud: Cloud, tenant: str) -> None:
    created = agent(secrets.token_urlsafe(375_000))
    await cloud.store.agents.create(tenant, created)
    for number in range(12):
        expires_at = int(time.time()) + 600 if number % 2 else None
        await cloud.store.sessions.create(tenant, created.agent_id, session("x" * number * 50), expires_at)
    other = await SessionFixture.create(cloud.store, tenant)
    await fill(other)

    done = await delete_agent(cloud.store, tenant, created.agent_id)

    assert done
    assert all(other.agent_id in str(item) for item in cloud.items(tenant))
    assert all(other.agent_id in key for key in cloud.blobs(tenant))
    assert len(await other.turns()) == 3
    with pytest.raises(NotFound):
        await cloud.store.agents.mark_deleted(tenant, created.agent_id)
    assert await cloud.store.deletion.delete_agent(tenant, created.agent_id, NEVER)


async def test_the_deletion_of_an_agent_stops_at_its_deadline(cloud: Cloud, tenant: str) -> None:
    session_fixture = await SessionFixture.create(cloud.store, tenant)
    await fill(session_fixture)

    done = await delete_agent(cloud.store, tenant, session_fixture.agent_id, time.monotonic())

    assert not done
    assert (await cloud.store.agents.list(tenant, Window())).data == []
    assert kinds(cloud, tenant) == {"agent", "session", "all_sessions", "in_progress_tool_call_step"}
    assert await cloud.store.deletion.delete_agent(tenant, session_fixture.agent_id, NEVER)
    assert cloud.items(tenant) == []
    assert cloud.blobs(tenant) == []


async def test_a_session_created_while_its_agent_is_deleted_does_not_stay(store: Store, tenant: str) -> None:
    for _ in range(10):
        created = agent()
        await store.agents.create(tenant, created)
        creator = asyncio.create_task(create_until_refused(store, tenant, created.agent_id))

        await delete_agent(store, tenant, created.agent_id)
        await creator

        assert [one async for one in store.sessions.ids(tenant, created.agent_id)] == []


async def create_until_refused(store: Store, tenant: str, agent_id: str) -> None:
    try:
        for _ in range(100):
            await store.sessions.create(tenant, agent_id, session(), None)
    except NotFound:
        return
