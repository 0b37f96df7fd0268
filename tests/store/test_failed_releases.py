"""A lease whose release failed is free once its turn has ended."""

import pytest
from tests.store.conftest import Cloud
from tests.store.record_samples import SessionFixture, ending, header, record

from stint.domain.errors import Conflict
from stint.domain.run_outcome import RunStatus
from stint.store.session_leases import SessionLease
from stint.store.sessions import UNKNOWN, LastTurn
from stint.store.store import Store

ENDINGS = (RunStatus.completed, RunStatus.awaiting_input, RunStatus.failed)
RESUMABLE = (RunStatus.completed, RunStatus.awaiting_input)


@pytest.fixture
async def session_fixture(store: Store, tenant: str) -> SessionFixture:
    return await SessionFixture.create(store, tenant)


async def refuse(session_fixture: SessionFixture) -> None:
    """Check that the session is locked, for a new turn and for a resume."""
    for resume in (False, True):
        with pytest.raises(Conflict) as raised:
            await session_fixture.acquire(
                (await session_fixture.store.sessions.get(*session_fixture.ids)).lease_turn, resume=resume
            )
        assert raised.value.code == "session_locked"


async def end_unreleased(session_fixture: SessionFixture, status: RunStatus) -> SessionLease:
    """Run a turn of two records whose lease is never released."""
    lease = await session_fixture.begin()
    await session_fixture.store.turns.append(lease, 0, record(lease.turn_id))
    await session_fixture.store.turns.append(lease, 1, record(lease.turn_id, status=status))
    return lease


@pytest.mark.parametrize("status", ENDINGS)
async def test_a_turn_that_has_ended_leaves_its_session_free(
    session_fixture: SessionFixture, status: RunStatus
) -> None:
    ended = await end_unreleased(session_fixture, status)

    lease = await session_fixture.acquire()

    assert lease.turn_id > ended.turn_id
    assert lease.taken_over_turn == ended.turn_id


async def test_a_turn_without_an_ending_keeps_its_session(session_fixture: SessionFixture) -> None:
    lease = await session_fixture.acquire()
    await refuse(session_fixture)

    await session_fixture.store.turns.put_header(lease, header(lease.turn_id, lease.session_id))
    await refuse(session_fixture)
    await session_fixture.store.turns.append(lease, 0, record(lease.turn_id))

    await refuse(session_fixture)


@pytest.mark.parametrize("status", RESUMABLE)
@pytest.mark.parametrize("released", [False, True])
async def test_a_resumed_turn_keeps_its_session_although_it_has_an_older_ending(
    session_fixture: SessionFixture, status: RunStatus, released: bool
) -> None:
    ended = await end_unreleased(session_fixture, status)
    if released:
        ended.last = LastTurn(ended.turn_id, 2)
        await ended.release()

    lease = await session_fixture.acquire(ended.turn_id, resume=True)
    await refuse(session_fixture)
    records = (
        await session_fixture.store.turns.seal(lease, ended.turn_id, ending(RunStatus.failed)) if not released else 2
    )
    await refuse(session_fixture)
    await session_fixture.store.turns.append(lease, records, record(lease.turn_id))
    await refuse(session_fixture)
    await session_fixture.store.turns.append(lease, records + 1, record(lease.turn_id, status=RunStatus.completed))

    assert (await session_fixture.acquire()).taken_over_turn == ended.turn_id


async def test_a_turn_that_was_resumed_after_its_process_died_keeps_its_session(
    session_fixture: SessionFixture,
) -> None:
    ended = await end_unreleased(session_fixture, RunStatus.awaiting_input)
    await ended.renew(-0.001)

    lease = await session_fixture.acquire(ended.turn_id, resume=True)

    await refuse(session_fixture)
    await session_fixture.store.turns.append(lease, 2, record(lease.turn_id))
    await refuse(session_fixture)


async def test_a_turn_whose_number_of_records_was_unknown_keeps_its_session(session_fixture: SessionFixture) -> None:
    ended = await end_unreleased(session_fixture, RunStatus.completed)
    ended.last = LastTurn(ended.turn_id, UNKNOWN)
    await ended.release()

    await session_fixture.acquire(ended.turn_id, resume=True)

    await refuse(session_fixture)


async def test_a_late_release_does_not_free_the_next_holder(session_fixture: SessionFixture) -> None:
    ended = await end_unreleased(session_fixture, RunStatus.completed)
    lease = await session_fixture.acquire()

    ended.last = LastTurn(ended.turn_id, 2)
    await ended.release()

    shown = await session_fixture.store.sessions.get(*session_fixture.ids)
    assert (shown.lease_turn, shown.last) == (lease.turn_id, None)


async def test_a_locked_session_costs_one_more_read_of_one_record(own_cloud: Cloud, tenant: str) -> None:
    session_fixture = await SessionFixture.create(own_cloud.store, tenant)
    lease = await session_fixture.begin()
    for index in range(5):
        await session_fixture.store.turns.append(lease, index, record(lease.turn_id, "word " * 3000))
    own_cloud.forget()

    with pytest.raises(Conflict):
        await session_fixture.acquire()

    assert own_cloud.proxy.calls == {"UpdateItem": 1, "Query": 1}
    assert own_cloud.proxy.units["Query"] <= 1
