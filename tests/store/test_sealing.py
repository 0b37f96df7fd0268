"""The fence: what keeps two writers of a turn apart."""

import asyncio
import random
import secrets
import time

import pytest
from tests.clock import CLOCK
from tests.store.conftest import Cloud
from tests.store.record_samples import Conversation, ending, header, record

from stint.domain.errors import Conflict, Interrupted, NotFound
from stint.domain.llama_stack.stored_turns import TurnRecord
from stint.domain.run_outcome import RunStatus
from stint.store import keys
from stint.store.keys import LAST_INDEX
from stint.store.session_leases import SessionLease
from stint.store.sessions import LastTurn
from stint.store.store import Store
from stint.store.tombstones import SEAL_SECONDS


@pytest.fixture
async def talk(store: Store, tenant: str) -> Conversation:
    return await Conversation.create(store, tenant)


async def test_a_place_in_the_log_is_given_once(talk: Conversation, store: Store) -> None:
    lease = await talk.begin()
    kept = record(lease.turn_id, "mine")
    await store.turns.append(lease, 0, kept)

    with pytest.raises(Interrupted):
        await store.turns.append(lease, 0, record(lease.turn_id, "late"))

    assert (await talk.turns())[0].records == [kept]


async def test_the_dead_writer_meets_the_seal(talk: Conversation, store: Store) -> None:
    dead = await talk.begin(seconds=-0.001)
    await store.turns.append(dead, 0, record(dead.turn_id))
    lease = await talk.acquire()

    count = await store.turns.seal(lease, dead.turn_id, ending(RunStatus.failed))

    assert count == 2
    with pytest.raises(Interrupted):
        await store.turns.append(dead, 1, record(dead.turn_id, "late", RunStatus.completed))
    [stored] = await talk.turns()
    assert stored.status is RunStatus.failed
    assert len(stored.steps) == 1


@pytest.mark.parametrize("status", [RunStatus.failed, RunStatus.cancelled])
async def test_records_after_a_closing_one_are_ignored(talk: Conversation, store: Store, status: RunStatus) -> None:
    lease = await talk.begin()
    await store.turns.append(lease, 0, record(lease.turn_id, status=status))
    await store.turns.append(lease, 1, record(lease.turn_id, "behind"))

    assert len((await talk.turns())[0].records) == 1
    assert (await store.turns.history(*talk.ids)).last == LastTurn(lease.turn_id, 1)


@pytest.mark.parametrize("status", [RunStatus.failed, RunStatus.cancelled])
async def test_a_turn_found_ended_is_left_as_it_is(talk: Conversation, store: Store, status: RunStatus) -> None:
    turn_id = await talk.turn(status=status)
    before = await talk.turns()

    count = await store.turns.seal(await talk.acquire(), turn_id, ending(RunStatus.failed))

    assert count == 1
    assert await talk.turns() == before


async def test_a_paused_turn_is_cancelled_but_does_not_fail(talk: Conversation, store: Store) -> None:
    turn_id = await talk.turn(status=RunStatus.awaiting_input)
    lease = await talk.acquire()

    assert await store.turns.seal(lease, turn_id, ending(RunStatus.failed)) == 1
    assert await talk.statuses() == [RunStatus.awaiting_input]
    assert await store.turns.seal(lease, turn_id, ending(RunStatus.cancelled)) == 2
    assert await talk.statuses() == [RunStatus.cancelled]


async def test_a_complete_turn_stays_complete_and_a_fence_keeps_out_who_had_resumed_it(
    talk: Conversation, store: Store
) -> None:
    turn_id = await talk.turn("Hello", "Hi")
    dead = await talk.acquire(turn_id, resume=True, seconds=-0.001)
    lease = await talk.acquire(turn_id, resume=True)
    [before] = await talk.turns()

    count = await store.turns.seal(lease, turn_id, ending(RunStatus.failed))

    [fenced] = await talk.turns()
    assert (count, len(fenced.records)) == (2, 2)
    assert fenced.to_turn() == before.to_turn()
    with pytest.raises(Interrupted):
        await store.turns.append(dead, 1, record(turn_id, "late"))
    await store.turns.append(lease, 2, record(turn_id, "more"))
    assert await talk.statuses() == [RunStatus.in_progress]
    await store.turns.append(lease, 3, record(turn_id, "done", RunStatus.completed))
    assert [each.model_response.content for each in (await talk.turns())[0].steps] == ["Hi", "more", "done"]
    assert (await store.turns.history(*talk.ids)).last == LastTurn(turn_id, 4)


async def test_a_complete_turn_whose_log_is_full_is_left_as_it_is(
    talk: Conversation, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn_id = await talk.turn()
    monkeypatch.setattr("stint.store.keys.LAST_INDEX", 0)
    lease = await talk.acquire(turn_id, resume=True)

    count = await store.turns.seal(lease, turn_id, ending(RunStatus.failed))

    assert (count, await talk.statuses()) == (1, [RunStatus.completed])
    with pytest.raises(Conflict, match="Create another turn"):
        await store.turns.append(lease, 1, record(turn_id))


@pytest.mark.parametrize("paused", [RunStatus.awaiting_input, RunStatus.completed])
async def test_a_turn_that_went_on_after_a_pause_is_sealed(talk: Conversation, store: Store, paused: RunStatus) -> None:
    turn_id = await talk.turn(status=paused)
    resumed = await talk.acquire(turn_id, resume=True, seconds=-0.001)
    await store.turns.append(resumed, 1, record(turn_id, "going on"))

    count = await store.turns.seal(await talk.acquire(), turn_id, ending(RunStatus.failed))

    assert count == 3
    assert await talk.statuses() == [RunStatus.failed]


async def test_a_turn_sealed_before_it_began_never_begins(talk: Conversation, store: Store) -> None:
    first = await talk.turn()
    dead = await talk.acquire(seconds=-0.001)
    lease = await talk.acquire()

    counts = [await store.turns.seal(lease, dead.turn_id, ending(RunStatus.failed)) for _ in range(2)]

    assert counts == [0, 0]
    with pytest.raises(Interrupted):
        await store.turns.put_header(dead, header(dead.turn_id, talk.session_id))
    with pytest.raises(NotFound):
        await store.turns.get(*talk.ids, dead.turn_id)
    assert (await store.turns.history(*talk.ids)).last == LastTurn(first, 1)


async def test_the_seal_of_a_turn_that_never_began_expires_without_its_session(
    cloud: Cloud, tenant: str, talk: Conversation
) -> None:
    first = await talk.turn()
    dead = await talk.acquire(seconds=-0.001)
    before = int(time.time())

    await cloud.store.turns.seal(await talk.acquire(), dead.turn_id, ending(RunStatus.failed))

    [seal] = [item for item in cloud.items(tenant) if "sealed_at" in item]
    assert before + SEAL_SECONDS <= int(seal["expires_at"]["N"]) <= time.time() + SEAL_SECONDS
    CLOCK.move(SEAL_SECONDS + 1)
    assert [turn.header.turn_id for turn in await talk.turns()] == [first]
    [(turns, _)] = [page async for page in cloud.store.turns.pages(*talk.ids)]
    assert [turn.header.turn_id for turn in turns] == [first]


async def test_a_seal_without_an_expiry_is_deleted_with_its_session(
    cloud: Cloud, tenant: str, talk: Conversation
) -> None:
    dead = await talk.acquire(seconds=-0.001)
    lease = await talk.acquire()
    await lease.release()
    cloud.write([keys.turn(*talk.ids, dead.turn_id)._asdict() | {"sealed_at": int(time.time())}])

    await cloud.store.sessions.mark_deleted(*talk.ids)
    assert await cloud.store.deletion.delete_session(*talk.ids, float("inf"))

    assert [item for item in cloud.items(tenant) if "sealed_at" in item] == []


async def test_the_last_place_of_a_log_is_for_the_ending(talk: Conversation, store: Store) -> None:
    lease = await talk.begin()

    with pytest.raises(Conflict, match="Create another turn"):
        await store.turns.append(lease, LAST_INDEX, record(lease.turn_id))
    await store.turns.append(lease, LAST_INDEX, record(lease.turn_id, status=RunStatus.completed))

    assert await talk.statuses() == [RunStatus.completed]


async def test_the_dead_writer_and_the_sealer_leave_one_log_without_gaps(cloud: Cloud, talk: Conversation) -> None:
    for _ in range(8):
        dead = await talk.begin(seconds=-0.001)
        lease = await talk.acquire()
        writers = [asyncio.create_task(write_until_interrupted(cloud.store, dead)) for _ in range(2)]
        sealing = (cloud.store.turns.seal(lease, dead.turn_id, ending(RunStatus.failed)) for _ in range(16))
        sealers = [asyncio.create_task(one) for one in sealing]
        await asyncio.gather(*writers, *sealers)

        counts = {sealer.result() for sealer in sealers}
        stored = await cloud.store.turns.get(*talk.ids, dead.turn_id)
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
    talk = await Conversation.create(own_cloud.store, tenant)
    lease = await talk.begin()
    kept = record(lease.turn_id, secrets.token_urlsafe(size), RunStatus.completed)
    sent = own_cloud.proxy.lose_first_answer("PutItem")

    await own_cloud.store.turns.append(lease, 0, kept)

    assert sent == [200, 400]
    assert (await talk.turns())[0].records == [kept]


async def test_a_record_with_nothing_but_the_ending_reads_back(talk: Conversation, store: Store) -> None:
    lease = await talk.begin()
    only = TurnRecord(ending=ending(RunStatus.failed))

    await store.turns.append(lease, 0, only)

    assert (await talk.turns())[0].records == [only]
