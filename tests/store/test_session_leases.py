import asyncio
import time

import pytest
from tests.clock import CLOCK
from tests.store.conftest import Cloud
from tests.store.record_samples import Conversation, ending, record

from stint.domain.errors import Conflict, Interrupted, NotFound
from stint.domain.ids import new_id
from stint.domain.run_outcome import RunStatus
from stint.store.session_leases import SessionLease
from stint.store.sessions import LastTurn
from stint.store.store import Store


@pytest.fixture
async def talk(store: Store, tenant: str) -> Conversation:
    return await Conversation.create(store, tenant)


async def run_out(talk: Conversation, turn_id: str | None = None) -> SessionLease:
    """Take a lease and let it run out."""
    return await talk.acquire(turn_id, seconds=-0.001)


async def test_a_first_lease_knows_no_last_turn(talk: Conversation) -> None:
    turn_id = new_id()

    with CLOCK.stop():
        lease = await talk.acquire(turn_id)
        until = round((time.time() + 30) * 1000)

    assert (lease.turn_id, lease.last, lease.taken_over_turn, lease.expires_at) == (turn_id, None, None, None)
    shown = await talk.store.sessions.get(*talk.ids)
    assert (shown.lease_turn, shown.lease_until) == (turn_id, until)


async def test_a_lease_tells_where_the_history_ends_and_when_the_session_expires(store: Store, tenant: str) -> None:
    expires_at = int(time.time()) + 60
    talk = await Conversation.create(store, tenant, expires_at)
    turn_id = await talk.turn()

    lease = await talk.acquire()

    assert lease.last == LastTurn(turn_id, 1)
    assert lease.expires_at == expires_at


async def test_a_session_runs_one_turn_at_a_time(talk: Conversation) -> None:
    running = await talk.acquire()

    for resume in (False, True):
        with pytest.raises(Conflict, match=f"running turn {running.turn_id}. Wait") as raised:
            await talk.acquire(resume=resume)
        assert raised.value.code == "session_locked"


async def test_a_released_lease_can_be_taken_again(talk: Conversation) -> None:
    first = await talk.acquire()
    await first.release()

    second = await talk.acquire()

    assert second.last is None
    assert second.taken_over_turn is None


async def test_a_release_without_a_new_turn_keeps_the_last_one(talk: Conversation) -> None:
    turn_id = await talk.turn()
    lease = await talk.acquire()

    await lease.release()

    assert (await talk.store.sessions.get(*talk.ids)).last == LastTurn(turn_id, 1)


async def test_an_id_made_by_a_slow_clock_is_made_anew(talk: Conversation) -> None:
    slow = new_id()
    last = await talk.turn()

    lease = await talk.acquire(slow)

    assert lease.turn_id > last
    assert lease.last == LastTurn(last, 1)


async def test_an_id_made_by_a_slow_clock_sorts_behind_a_turn_that_is_taken_over(talk: Conversation) -> None:
    slow = new_id()
    dead = await run_out(talk)

    lease = await talk.acquire(slow)

    assert lease.turn_id > dead.turn_id
    assert lease.taken_over_turn == dead.turn_id


async def test_the_last_turn_can_be_resumed_and_no_other(talk: Conversation) -> None:
    first = await talk.turn(status=RunStatus.awaiting_input)
    second = await talk.turn(status=RunStatus.awaiting_input)

    with pytest.raises(Conflict) as raised:
        await talk.acquire(first, resume=True)
    lease = await talk.acquire(second, resume=True)

    assert raised.value.code == "not_last_turn"
    assert lease.turn_id == second


@pytest.mark.parametrize("turn_id", ["01990000-0000-7000-8000-000000000000", "nonsense", ""])
async def test_a_turn_that_is_not_there_is_not_resumed(talk: Conversation, turn_id: str) -> None:
    with pytest.raises((Conflict, NotFound)) as raised:
        await talk.acquire(turn_id, resume=True)

    assert raised.value.code in ("not_last_turn", "turn_not_found")


async def test_a_session_that_is_not_there_gives_no_lease(talk: Conversation) -> None:
    for session_id in (new_id(), "nonsense"):
        with pytest.raises(NotFound) as raised:
            await talk.store.session_leases.acquire(
                talk.tenant, talk.agent_id, session_id, new_id(), resume=False, seconds=30
            )
        assert raised.value.code == "session_not_found"


async def test_a_lease_that_ran_out_is_taken_over(talk: Conversation) -> None:
    dead = await run_out(talk)

    lease = await talk.acquire()

    assert lease.taken_over_turn == dead.turn_id
    with pytest.raises(Interrupted):
        await dead.renew(30)


async def test_a_turn_whose_holder_died_before_the_release_can_be_resumed(talk: Conversation) -> None:
    dead = await talk.begin(seconds=-0.001)
    await talk.store.turns.append(dead, 0, record(dead.turn_id, status=RunStatus.awaiting_input))

    lease = await talk.acquire(dead.turn_id, resume=True)
    sealed = await talk.store.turns.seal(lease, dead.turn_id, ending(RunStatus.failed))

    assert lease.taken_over_turn == dead.turn_id
    assert sealed == 1
    assert await talk.statuses() == [RunStatus.awaiting_input]


async def test_a_renewed_lease_is_not_taken_over(talk: Conversation) -> None:
    lease = await run_out(talk)

    await lease.renew(30)

    with pytest.raises(Conflict):
        await talk.acquire()


async def test_the_release_of_a_lost_lease_changes_nothing(talk: Conversation) -> None:
    dead = await run_out(talk)
    lease = await talk.acquire()

    dead.last = LastTurn(dead.turn_id, 7)
    await dead.release()

    shown = await talk.store.sessions.get(*talk.ids)
    assert shown.lease_turn == lease.turn_id
    assert shown.last is None


@pytest.mark.parametrize("removed", [False, True])
async def test_the_lease_of_a_deleted_session_is_not_renewed(talk: Conversation, removed: bool) -> None:
    lease = await talk.acquire()
    await talk.store.sessions.mark_deleted(*talk.ids)
    if removed:
        await talk.store.sessions.remove(*talk.ids)

    with pytest.raises(Interrupted):
        await lease.renew(30)
    lease.last = LastTurn(lease.turn_id, 1)
    await lease.release()

    with pytest.raises(NotFound):
        await talk.store.sessions.get(*talk.ids)


async def test_sixteen_requests_get_one_lease(cloud: Cloud, talk: Conversation) -> None:
    outcomes = await asyncio.gather(*(outcome(talk) for _ in range(32)))

    assert outcomes.count("session_locked") == 31
    assert len(set(outcomes)) == 2


async def test_a_takeover_has_one_winner(cloud: Cloud, talk: Conversation) -> None:
    dead = await run_out(talk)

    outcomes = await asyncio.gather(*(outcome(talk) for _ in range(32)))

    assert outcomes.count("session_locked") == 31
    assert outcomes.count(f"took over {dead.turn_id}") == 1


async def test_a_renewal_and_a_takeover_do_not_both_succeed(cloud: Cloud, talk: Conversation) -> None:
    for _ in range(20):
        dead = await run_out(talk)
        renewal, takeover = await asyncio.gather(renewed(talk, dead), outcome(talk))

        assert renewal is (takeover == "session_locked")
        await talk.store.sessions.remove(*talk.ids)
        talk = await Conversation.create(talk.store, talk.tenant)


@pytest.mark.parametrize("dead", [False, True])
async def test_a_lease_whose_answer_was_lost_is_held_all_the_same(own_cloud: Cloud, tenant: str, dead: bool) -> None:
    talk = await Conversation.create(own_cloud.store, tenant)
    over = (await run_out(talk)).turn_id if dead else None
    sent = own_cloud.proxy.lose_first_answer("UpdateItem", after=200)

    lease = await talk.acquire()

    assert sent[-2:] == [200, 400]
    assert lease.taken_over_turn == over
    assert (await talk.store.sessions.get(*talk.ids)).lease_turn == lease.turn_id


async def test_a_release_whose_answer_was_lost_is_done(own_cloud: Cloud, tenant: str) -> None:
    talk = await Conversation.create(own_cloud.store, tenant)
    lease = await talk.acquire()
    sent = own_cloud.proxy.lose_first_answer("UpdateItem")

    lease.last = LastTurn(lease.turn_id, 3)
    await lease.release()

    assert sent == [200, 400]
    assert (await talk.store.sessions.get(*talk.ids)).last == LastTurn(lease.turn_id, 3)


async def outcome(talk: Conversation) -> str:
    try:
        lease = await talk.acquire()
    except Conflict as conflict:
        return conflict.code
    return f"took over {lease.taken_over_turn}"


async def renewed(talk: Conversation, lease: SessionLease) -> bool:
    try:
        await lease.renew(30)
    except Interrupted:
        return False
    return True
