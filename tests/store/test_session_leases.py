import asyncio
import time

import pytest
from tests.clock import CLOCK
from tests.store.conftest import Cloud
from tests.store.record_samples import SessionFixture, ending, record

from stint.domain.errors import Conflict, Interrupted, NotFound
from stint.domain.ids import new_id
from stint.domain.run_outcome import RunStatus
from stint.store.keys import KeyLayout
from stint.store.session_leases import SessionLease
from stint.store.sessions import LastTurn
from stint.store.store import Store

LAYOUTS: list[tuple[KeyLayout, KeyLayout]] = [
    ("spread", "spread"),
    ("compatible", "compatible"),
    ("compatible", "spread"),
    ("spread", "compatible"),
]


@pytest.fixture(params=LAYOUTS, ids="-".join)
async def session_fixture(cloud: Cloud, tenant: str, request: pytest.FixtureRequest) -> SessionFixture:
    """Return a session that a process with one key layout has made, and one with the same or another layout uses."""
    made_by, used_by = (cloud.other_process(layout) for layout in request.param)
    made = await SessionFixture.create(made_by, tenant)
    return SessionFixture(used_by, *made.ids)


async def run_out(session_fixture: SessionFixture, turn_id: str | None = None) -> SessionLease:
    """Take a lease and let it run out."""
    return await session_fixture.acquire(turn_id, seconds=-0.001)


async def test_a_first_lease_knows_no_last_turn(session_fixture: SessionFixture) -> None:
    turn_id = new_id()

    with CLOCK.stop():
        lease = await session_fixture.acquire(turn_id)
        until = round((time.time() + 30) * 1000)

    assert (lease.turn_id, lease.last, lease.taken_over_turn, lease.expires_at) == (turn_id, None, None, None)
    shown = await session_fixture.store.sessions.get(*session_fixture.ids)
    assert (shown.lease_turn, shown.lease_until) == (turn_id, until)


async def test_a_lease_tells_where_the_history_ends_and_when_the_session_expires(store: Store, tenant: str) -> None:
    expires_at = int(time.time()) + 60
    session_fixture = await SessionFixture.create(store, tenant, expires_at)
    turn_id = await session_fixture.turn()

    lease = await session_fixture.acquire()

    assert lease.last == LastTurn(turn_id, 1)
    assert lease.expires_at == expires_at


async def test_a_session_runs_one_turn_at_a_time(session_fixture: SessionFixture) -> None:
    running = await session_fixture.acquire()

    for resume in (False, True):
        with pytest.raises(Conflict, match=f"running turn {running.turn_id}. Wait") as raised:
            await session_fixture.acquire(resume=resume)
        assert raised.value.code == "session_locked"


async def test_a_released_lease_can_be_taken_again(session_fixture: SessionFixture) -> None:
    first = await session_fixture.acquire()
    await first.release()

    second = await session_fixture.acquire()

    assert second.last is None
    assert second.taken_over_turn is None


async def test_a_release_without_a_new_turn_keeps_the_last_one(session_fixture: SessionFixture) -> None:
    turn_id = await session_fixture.turn()
    lease = await session_fixture.acquire()

    await lease.release()

    assert (await session_fixture.store.sessions.get(*session_fixture.ids)).last == LastTurn(turn_id, 1)


async def test_an_id_made_by_a_slow_clock_is_made_anew(session_fixture: SessionFixture) -> None:
    slow = new_id()
    last = await session_fixture.turn()

    lease = await session_fixture.acquire(slow)

    assert lease.turn_id > last
    assert lease.last == LastTurn(last, 1)


async def test_an_id_made_by_a_slow_clock_sorts_behind_a_turn_that_is_taken_over(
    session_fixture: SessionFixture,
) -> None:
    slow = new_id()
    dead = await run_out(session_fixture)

    lease = await session_fixture.acquire(slow)

    assert lease.turn_id > dead.turn_id
    assert lease.taken_over_turn == dead.turn_id


async def test_the_last_turn_can_be_resumed_and_no_other(session_fixture: SessionFixture) -> None:
    first = await session_fixture.turn(status=RunStatus.awaiting_input)
    second = await session_fixture.turn(status=RunStatus.awaiting_input)

    with pytest.raises(Conflict) as raised:
        await session_fixture.acquire(first, resume=True)
    lease = await session_fixture.acquire(second, resume=True)

    assert raised.value.code == "not_last_turn"
    assert lease.turn_id == second


@pytest.mark.parametrize("turn_id", ["01990000-0000-7000-8000-000000000000", "nonsense", ""])
async def test_a_turn_that_is_not_there_is_not_resumed(session_fixture: SessionFixture, turn_id: str) -> None:
    with pytest.raises((Conflict, NotFound)) as raised:
        await session_fixture.acquire(turn_id, resume=True)

    assert raised.value.code in ("not_last_turn", "turn_not_found")


async def test_a_session_that_is_not_there_gives_no_lease(session_fixture: SessionFixture) -> None:
    for session_id in (new_id(), "nonsense"):
        with pytest.raises(NotFound) as raised:
            await session_fixture.store.session_leases.acquire(
                session_fixture.tenant, session_fixture.agent_id, session_id, new_id(), resume=False, seconds=30
            )
        assert raised.value.code == "session_not_found"


async def test_a_lease_that_ran_out_is_taken_over(session_fixture: SessionFixture) -> None:
    dead = await run_out(session_fixture)

    lease = await session_fixture.acquire()

    assert lease.taken_over_turn == dead.turn_id
    with pytest.raises(Interrupted):
        await dead.renew(30)


async def test_a_turn_whose_holder_died_before_the_release_can_be_resumed(session_fixture: SessionFixture) -> None:
    dead = await session_fixture.begin(seconds=-0.001)
    await session_fixture.store.turns.append(dead, 0, record(dead.turn_id, status=RunStatus.awaiting_input))

    lease = await session_fixture.acquire(dead.turn_id, resume=True)
    sealed = await session_fixture.store.turns.seal(lease, dead.turn_id, ending(RunStatus.failed))

    assert lease.taken_over_turn == dead.turn_id
    assert sealed == 1
    assert await session_fixture.statuses() == [RunStatus.awaiting_input]


async def test_a_renewed_lease_is_not_taken_over(session_fixture: SessionFixture) -> None:
    lease = await run_out(session_fixture)

    await lease.renew(30)

    with pytest.raises(Conflict):
        await session_fixture.acquire()


async def test_the_release_of_a_lost_lease_changes_nothing(session_fixture: SessionFixture) -> None:
    dead = await run_out(session_fixture)
    lease = await session_fixture.acquire()

    dead.last = LastTurn(dead.turn_id, 7)
    await dead.release()

    shown = await session_fixture.store.sessions.get(*session_fixture.ids)
    assert shown.lease_turn == lease.turn_id
    assert shown.last is None


@pytest.mark.parametrize("removed", [False, True])
async def test_the_lease_of_a_deleted_session_is_not_renewed(session_fixture: SessionFixture, removed: bool) -> None:
    lease = await session_fixture.acquire()
    await session_fixture.store.sessions.mark_deleted(*session_fixture.ids)
    if removed:
        await session_fixture.store.session_records.remove(*session_fixture.ids)

    with pytest.raises(Interrupted):
        await lease.renew(30)
    lease.last = LastTurn(lease.turn_id, 1)
    await lease.release()

    with pytest.raises(NotFound):
        await session_fixture.store.sessions.get(*session_fixture.ids)


async def test_one_of_32_requests_gets_the_lease(cloud: Cloud, session_fixture: SessionFixture) -> None:
    outcomes = await asyncio.gather(*(outcome(session_fixture) for _ in range(32)))

    assert outcomes.count("session_locked") == 31
    assert len(set(outcomes)) == 2


async def test_a_takeover_has_one_winner(cloud: Cloud, session_fixture: SessionFixture) -> None:
    dead = await run_out(session_fixture)

    outcomes = await asyncio.gather(*(outcome(session_fixture) for _ in range(32)))

    assert outcomes.count("session_locked") == 31
    assert outcomes.count(f"took over {dead.turn_id}") == 1


async def test_a_renewal_and_a_takeover_do_not_both_succeed(cloud: Cloud, session_fixture: SessionFixture) -> None:
    for _ in range(20):
        dead = await run_out(session_fixture)
        renewal, takeover = await asyncio.gather(renewed(session_fixture, dead), outcome(session_fixture))

        assert renewal is (takeover == "session_locked")
        await session_fixture.store.session_records.remove(*session_fixture.ids)
        session_fixture = await SessionFixture.create(session_fixture.store, session_fixture.tenant)


@pytest.mark.parametrize("dead", [False, True])
async def test_a_lease_whose_answer_was_lost_is_held_all_the_same(own_cloud: Cloud, tenant: str, dead: bool) -> None:
    session_fixture = await SessionFixture.create(own_cloud.store, tenant)
    over = (await run_out(session_fixture)).turn_id if dead else None
    sent = own_cloud.proxy.lose_first_answer("UpdateItem", after=200)

    lease = await session_fixture.acquire()

    assert sent[-2:] == [200, 400]
    assert lease.taken_over_turn == over
    assert (await session_fixture.store.sessions.get(*session_fixture.ids)).lease_turn == lease.turn_id


async def test_a_release_whose_answer_was_lost_is_done(own_cloud: Cloud, tenant: str) -> None:
    session_fixture = await SessionFixture.create(own_cloud.store, tenant)
    lease = await session_fixture.acquire()
    sent = own_cloud.proxy.lose_first_answer("UpdateItem")

    lease.last = LastTurn(lease.turn_id, 3)
    await lease.release()

    assert sent == [200, 400]
    assert (await session_fixture.store.sessions.get(*session_fixture.ids)).last == LastTurn(lease.turn_id, 3)


async def outcome(session_fixture: SessionFixture) -> str:
    try:
        lease = await session_fixture.acquire()
    except Conflict as conflict:
        return conflict.code
    return f"took over {lease.taken_over_turn}"


async def renewed(session_fixture: SessionFixture, lease: SessionLease) -> bool:
    try:
        await lease.renew(30)
    except Interrupted:
        return False
    return True
