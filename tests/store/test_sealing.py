"""The fence: what keeps two writers of a turn apart."""

import asyncio
import random
import secrets
import time

import pytest
from tests.clock import CLOCK
from tests.store.conftest import Cloud
from tests.store.record_samples import SessionFixture, ending, header, record

from stint.domain.errors import Conflict, Interrupted, NotFound
from stint.domain.llama_stack.stored_turns import TurnRecord
from stint.domain.run_outcome import RunStatus
from stint.store import keys
from stint.store.keys import LAST_INDEX
from stint.store.records import SEAL_SECONDS
from stint.store.session_leases import SessionLease
from stint.store.sessions import LastTurn
from stint.store.store import Store


@pytest.fixture
async def session_fixture(store: Store, tenant: str) -> SessionFixture:
    return await SessionFixture.create(store, tenant)


async def test_a_place_in_the_log_is_given_once(session_fixture: SessionFixture, store: Store) -> None:
    lease = await session_fixture.begin()
    kept = record(lease.turn_id, "mine")
    await store.turns.append(lease, 0, kept)

    with pytest.raises(Interrupted):
        await store.turns.append(lease, 0, record(lease.turn_id, "late"))

    assert (await session_fixture.turns())[0].records == [kept]


async def test_the_dead_writer_meets_the_seal(session_fixture: SessionFixture, store: Store) -> None:
    dead = await session_fixture.begin(seconds=-0.001)
    await store.turns.append(dead, 0, record(dead.turn_id))
    lease = await session_fixture.acquire()

    count = await store.turns.seal(lease, dead.turn_id, ending(RunStatus.failed))

    assert count == 2
    with pytest.raises(Interrupted):
        await store.turns.append(dead, 1, record(dead.turn_id, "late", RunStatus.completed))
    [stored] = await session_fixture.turns()
    assert stored.status is RunStatus.failed
    assert len(stored.steps) == 1


@pytest.mark.parametrize("status", [RunStatus.failed, RunStatus.cancelled])
async def test_records_after_a_closing_one_are_ignored(
    session_fixture: SessionFixture, store: Store, status: RunStatus
) -> None:
    lease = await session_fixture.begin()
    await store.turns.append(lease, 0, record(lease.turn_id, status=status))
    await store.turns.append(lease, 1, record(lease.turn_id, "behind"))

    assert len((await session_fixture.turns())[0].records) == 1
    assert (await store.turns.history(*session_fixture.ids)).last == LastTurn(lease.turn_id, 1)


@pytest.mark.parametrize("status", [RunStatus.failed, RunStatus.cancelled])
async def test_a_turn_found_ended_is_left_as_it_is(
    session_fixture: SessionFixture, store: Store, status: RunStatus
) -> None:
    turn_id = await session_fixture.turn(status=status)
    before = await session_fixture.turns()

    count = await store.turns.seal(await session_fixture.acquire(), turn_id, ending(RunStatus.failed))

    assert count == 1
    assert await session_fixture.turns() == before


async def test_a_paused_turn_is_cancelled_but_does_not_fail(session_fixture: SessionFixture, store: Store) -> None:
    turn_id = await session_fixture.turn(status=RunStatus.awaiting_input)
    lease = await session_fixture.acquire()

    assert await store.turns.seal(lease, turn_id, ending(RunStatus.failed)) == 1
    assert await session_fixture.statuses() == [RunStatus.awaiting_input]
    assert await store.turns.seal(lease, turn_id, ending(RunStatus.cancelled)) == 2
    assert await session_fixture.statuses() == [RunStatus.cancelled]


async def test_a_complete_turn_stays_complete_and_a_fence_keeps_out_who_had_resumed_it(
    session_fixture: SessionFixture, store: Store
) -> None:
    turn_id = await session_fixture.turn("Hello", "Hi")
    dead = await session_fixture.acquire(turn_id, resume=True, seconds=-0.001)
    lease = await session_fixture.acquire(turn_id, resume=True)
    [before] = await session_fixture.turns()

    count = await store.turns.seal(lease, turn_id, ending(RunStatus.failed))

    [fenced] = await session_fixture.turns()
    assert (count, len(fenced.records)) == (2, 2)
    assert fenced.to_turn() == before.to_turn()
    with pytest.raises(Interrupted):
        await store.turns.append(dead, 1, record(turn_id, "late"))
    await store.turns.append(lease, 2, record(turn_id, "more"))
    assert await session_fixture.statuses() == [RunStatus.in_progress]
    await store.turns.append(lease, 3, record(turn_id, "done", RunStatus.completed))
    assert [each.model_response.content for each in (await session_fixture.turns())[0].steps] == ["Hi", "more", "done"]
    assert (await store.turns.history(*session_fixture.ids)).last == LastTurn(turn_id, 4)


async def test_a_complete_turn_whose_log_is_full_is_left_as_it_is(
    session_fixture: SessionFixture, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn_id = await session_fixture.turn()
    monkeypatch.setattr("stint.store.keys.LAST_INDEX", 0)
    lease = await session_fixture.acquire(turn_id, resume=True)

    count = await store.turns.seal(lease, turn_id, ending(RunStatus.failed))

    assert (count, await session_fixture.statuses()) == (1, [RunStatus.completed])
    with pytest.raises(Conflict, match="Create another turn"):
        await store.turns.append(lease, 1, record(turn_id))


@pytest.mark.parametrize("paused", [RunStatus.awaiting_input, RunStatus.completed])
async def test_a_turn_that_went_on_after_a_pause_is_sealed(
    session_fixture: SessionFixture, store: Store, paused: RunStatus
) -> None:
    turn_id = await session_fixture.turn(status=paused)
    resumed = await session_fixture.acquire(turn_id, resume=True, seconds=-0.001)
    await store.turns.append(resumed, 1, record(turn_id, "going on"))

    count = await store.turns.seal(await session_fixture.acquire(), turn_id, ending(RunStatus.failed))

    assert count == 3
    assert await session_fixture.statuses() == [RunStatus.failed]


async def test_a_turn_sealed_before_it_began_never_begins(session_fixture: SessionFixture, store: Store) -> None:
    first = await session_fixture.turn()
    dead = await session_fixture.acquire(seconds=-0.001)
    lease = await session_fixture.acquire()

    counts = [await store.turns.seal(lease, dead.turn_id, ending(RunStatus.failed)) for _ in range(2)]

    assert counts == [0, 0]
    with pytest.raises(Interrupted):
        await store.turns.put_header(dead, header(dead.turn_id, session_fixture.session_id))
    with pytest.raises(NotFound):
        await store.turns.get(*session_fixture.ids, dead.turn_id)
    assert (await store.turns.history(*session_fixture.ids)).last == LastTurn(first, 1)


async def test_the_seal_of_a_turn_that_never_began_expires_without_its_session(
    cloud: Cloud, tenant: str, session_fixture: SessionFixture
) -> None:
    first = await session_fixture.turn()
    dead = await session_fixture.acquire(seconds=-0.001)
    before = int(time.time())

    await cloud.store.turns.seal(await session_fixture.acquire(), dead.turn_id, ending(RunStatus.failed))

    [seal] = [item for item in cloud.items(tenant) if "sealed_at" in item]
    assert before + SEAL_SECONDS <= int(seal["expires_at"]["N"]) <= time.time() + SEAL_SECONDS
    CLOCK.move(SEAL_SECONDS + 1)
    assert [turn.header.turn_id for turn in await session_fixture.turns()] == [first]
    [(turns, _)] = [page async for page in cloud.store.turns.pages(*session_fixture.ids)]
    assert [turn.header.turn_id for turn in turns] == [first]


async def test_a_seal_without_an_expiry_is_deleted_with_its_session(
    cloud: Cloud, tenant: str, session_fixture: SessionFixture
) -> None:
    dead = await session_fixture.acquire(seconds=-0.001)
    lease = await session_fixture.acquire()
    await lease.release()
    cloud.write([keys.turn(*session_fixture.ids, dead.turn_id)._asdict() | {"sealed_at": int(time.time())}])

    await cloud.store.sessions.mark_deleted(*session_fixture.ids)
    assert await cloud.store.deletion.delete_session(*session_fixture.ids, float("inf"))

    assert [item for item in cloud.items(tenant) if "sealed_at" in item] == []


async def test_the_last_place_of_a_log_is_for_the_ending(session_fixture: SessionFixture, store: Store) -> None:
    lease = await session_fixture.begin()

    with pytest.raises(Conflict, match="Create another turn"):
        await store.turns.append(lease, LAST_INDEX, record(lease.turn_id))
    await store.turns.append(lease, LAST_INDEX, record(lease.turn_id, status=RunStatus.completed))

    assert await session_fixture.statuses() == [RunStatus.completed]


async def test_the_dead_writer_and_the_sealer_leave_one_log_without_gaps(
    cloud: Cloud, session_fixture: SessionFixture
) -> None:
    for _ in range(8):
        dead = await session_fixture.begin(seconds=-0.001)
        lease = await session_fixture.acquire()
        writers = [asyncio.create_task(write_until_interrupted(cloud.store, dead)) for _ in range(2)]
        sealing = (cloud.store.turns.seal(lease, dead.turn_id, ending(RunStatus.failed)) for _ in range(16))
        sealers = [asyncio.create_task(one) for one in sealing]
        await asyncio.gather(*writers, *sealers)

        counts = {sealer.result() for sealer in sealers}
        stored = await cloud.store.turns.get(*session_fixture.ids, dead.turn_id)
        finals = [one for one in stored.records if one.final]

        assert len(finals) == 1
        assert finals[0] is stored.records[-1]
        assert counts == {len(stored.records)}
        assert sum(writer.result() for writer in writers) == len(stored.records) - 1
        lease.last = LastTurn(dead.turn_id, len(stored.records))
        await lease.release()


async def write_until_interrupted(store: Store, lease: SessionLease) -> int:
    """Append at every place until somebody else's record stands at one; count what was stored."""
    for index in range(LAST_INDEX):
        await asyncio.sleep(random.uniform(0, 0.02))  # the others get a chance
        try:
            await store.turns.append(lease, index, record(lease.turn_id, f"step {index}"))
        except Interrupted:
            return index
    return LAST_INDEX


@pytest.mark.parametrize("size", [10, 600_000])
async def test_a_record_whose_answer_was_lost_is_stored_once(own_cloud: Cloud, tenant: str, size: int) -> None:
    session_fixture = await SessionFixture.create(own_cloud.store, tenant)
    lease = await session_fixture.begin()
    kept = record(lease.turn_id, secrets.token_urlsafe(size), RunStatus.completed)
    sent = own_cloud.proxy.lose_first_answer("PutItem")

    await own_cloud.store.turns.append(lease, 0, kept)

    assert sent == [200, 400]
    assert (await session_fixture.turns())[0].records == [kept]


async def test_a_record_with_nothing_but_the_ending_reads_back(session_fixture: SessionFixture, store: Store) -> None:
    lease = await session_fixture.begin()
    only = TurnRecord(ending=ending(RunStatus.failed))

    await store.turns.append(lease, 0, only)

    assert (await session_fixture.turns())[0].records == [only]
