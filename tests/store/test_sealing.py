"""The fence: what keeps two writers of a turn apart."""

import secrets
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.store.conftest import Cloud, lose_first_answer
from tests.store.record_samples import Conversation, ending, header, record

from stint.domain.errors import Conflict, Interrupted, NotFound
from stint.domain.llama_stack.stored_turns import TurnRecord
from stint.domain.run_outcome import RunStatus
from stint.store.keys import LAST_INDEX
from stint.store.session_leases import SessionLease
from stint.store.sessions import LastTurn
from stint.store.store import Store


@pytest.fixture
def talk(store: Store, tenant: str) -> Conversation:
    return Conversation(store, tenant)


def test_a_place_in_the_log_is_given_once(talk: Conversation, store: Store) -> None:
    lease = talk.begin()
    kept = record(lease.turn_id, "mine")
    store.turns.append(lease, 0, kept)

    with pytest.raises(Interrupted):
        store.turns.append(lease, 0, record(lease.turn_id, "late"))

    assert talk.turns()[0].records == [kept]


def test_the_dead_writer_meets_the_seal(talk: Conversation, store: Store) -> None:
    dead = talk.begin(seconds=-0.001)
    store.turns.append(dead, 0, record(dead.turn_id))
    lease = talk.acquire()

    count = store.turns.seal(lease, dead.turn_id, ending(RunStatus.failed))

    assert count == 2
    with pytest.raises(Interrupted):
        store.turns.append(dead, 1, record(dead.turn_id, "late", RunStatus.completed))
    [stored] = talk.turns()
    assert stored.status is RunStatus.failed
    assert len(stored.steps) == 1


@pytest.mark.parametrize("status", [RunStatus.failed, RunStatus.cancelled])
def test_records_after_a_closing_one_are_ignored(talk: Conversation, store: Store, status: RunStatus) -> None:
    lease = talk.begin()
    store.turns.append(lease, 0, record(lease.turn_id, status=status))
    store.turns.append(lease, 1, record(lease.turn_id, "behind"))

    assert len(talk.turns()[0].records) == 1
    assert store.turns.history(*talk.ids).last == LastTurn(lease.turn_id, 1)


@pytest.mark.parametrize("status", [RunStatus.failed, RunStatus.cancelled])
def test_a_turn_found_ended_is_left_as_it_is(talk: Conversation, store: Store, status: RunStatus) -> None:
    turn_id = talk.turn(status=status)
    before = talk.turns()

    count = store.turns.seal(talk.acquire(), turn_id, ending(RunStatus.failed))

    assert count == 1
    assert talk.turns() == before


def test_a_paused_turn_is_cancelled_but_does_not_fail(talk: Conversation, store: Store) -> None:
    turn_id = talk.turn(status=RunStatus.awaiting_input)
    lease = talk.acquire()

    assert store.turns.seal(lease, turn_id, ending(RunStatus.failed)) == 1
    assert talk.statuses() == [RunStatus.awaiting_input]
    assert store.turns.seal(lease, turn_id, ending(RunStatus.cancelled)) == 2
    assert talk.statuses() == [RunStatus.cancelled]


def test_a_complete_turn_stays_complete_and_a_fence_keeps_out_who_had_resumed_it(
    talk: Conversation, store: Store
) -> None:
    turn_id = talk.turn("Hello", "Hi")
    dead = talk.acquire(turn_id, resume=True, seconds=-0.001)
    lease = talk.acquire(turn_id, resume=True)
    [before] = talk.turns()

    count = store.turns.seal(lease, turn_id, ending(RunStatus.failed))

    [fenced] = talk.turns()
    assert (count, len(fenced.records)) == (2, 2)
    assert fenced.to_turn() == before.to_turn()
    with pytest.raises(Interrupted):
        store.turns.append(dead, 1, record(turn_id, "late"))
    store.turns.append(lease, 2, record(turn_id, "more"))
    assert talk.statuses() == [RunStatus.in_progress]
    store.turns.append(lease, 3, record(turn_id, "done", RunStatus.completed))
    assert [each.model_response.content for each in talk.turns()[0].steps] == ["Hi", "more", "done"]
    assert store.turns.history(*talk.ids).last == LastTurn(turn_id, 4)


def test_a_complete_turn_whose_log_is_full_is_left_as_it_is(
    talk: Conversation, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn_id = talk.turn()
    monkeypatch.setattr("stint.store.keys.LAST_INDEX", 0)
    lease = talk.acquire(turn_id, resume=True)

    count = store.turns.seal(lease, turn_id, ending(RunStatus.failed))

    assert (count, talk.statuses()) == (1, [RunStatus.completed])
    with pytest.raises(Conflict, match="Create another turn"):
        store.turns.append(lease, 1, record(turn_id))


@pytest.mark.parametrize("paused", [RunStatus.awaiting_input, RunStatus.completed])
def test_a_turn_that_went_on_after_a_pause_is_sealed(talk: Conversation, store: Store, paused: RunStatus) -> None:
    turn_id = talk.turn(status=paused)
    resumed = talk.acquire(turn_id, resume=True, seconds=-0.001)
    store.turns.append(resumed, 1, record(turn_id, "going on"))

    count = store.turns.seal(talk.acquire(), turn_id, ending(RunStatus.failed))

    assert count == 3
    assert talk.statuses() == [RunStatus.failed]


def test_a_turn_sealed_before_it_began_never_begins(talk: Conversation, store: Store) -> None:
    first = talk.turn()
    dead = talk.acquire(seconds=-0.001)
    lease = talk.acquire()

    counts = [store.turns.seal(lease, dead.turn_id, ending(RunStatus.failed)) for _ in range(2)]

    assert counts == [0, 0]
    with pytest.raises(Interrupted):
        store.turns.put_header(dead, header(dead.turn_id, talk.session_id))
    with pytest.raises(NotFound):
        store.turns.get(*talk.ids, dead.turn_id)
    assert store.turns.history(*talk.ids).last == LastTurn(first, 1)


def test_the_last_place_of_a_log_is_for_the_ending(talk: Conversation, store: Store) -> None:
    lease = talk.begin()

    with pytest.raises(Conflict, match="Create another turn"):
        store.turns.append(lease, LAST_INDEX, record(lease.turn_id))
    store.turns.append(lease, LAST_INDEX, record(lease.turn_id, status=RunStatus.completed))

    assert talk.statuses() == [RunStatus.completed]


def test_the_dead_writer_and_the_sealer_leave_one_log_without_gaps(cloud: Cloud, talk: Conversation) -> None:
    for _ in range(8):
        dead = talk.begin(seconds=-0.001)
        lease = talk.acquire()
        with ThreadPoolExecutor(18) as threads:
            writers = [threads.submit(write_until_interrupted, cloud.store, dead) for _ in range(2)]
            sealers = [
                threads.submit(cloud.store.turns.seal, lease, dead.turn_id, ending(RunStatus.failed)) for _ in range(16)
            ]

        counts = {sealer.result() for sealer in sealers}
        stored = cloud.store.turns.get(*talk.ids, dead.turn_id)
        finals = [one for one in stored.records if one.final]

        assert len(finals) == 1
        assert finals[0] is stored.records[-1]
        assert counts == {len(stored.records)}
        assert sum(writer.result() for writer in writers) == len(stored.records) - 1
        lease.last = LastTurn(dead.turn_id, len(stored.records))
        lease.release()


def write_until_interrupted(store: Store, lease: SessionLease) -> int:
    """Append at every place until somebody else's record stands at one; count what was stored."""
    for index in range(LAST_INDEX):
        try:
            store.turns.append(lease, index, record(lease.turn_id, f"step {index}"))
        except Interrupted:
            return index
    return LAST_INDEX


@pytest.mark.parametrize("size", [10, 600_000])
def test_a_record_whose_answer_was_lost_is_stored_once(own_cloud: Cloud, tenant: str, size: int) -> None:
    talk = Conversation(own_cloud.store, tenant)
    lease = talk.begin()
    kept = record(lease.turn_id, secrets.token_urlsafe(size), RunStatus.completed)
    sent = lose_first_answer(own_cloud, "PutItem")

    own_cloud.store.turns.append(lease, 0, kept)

    assert sent == [200, 400]
    assert talk.turns()[0].records == [kept]


def test_a_record_with_nothing_but_the_ending_reads_back(talk: Conversation, store: Store) -> None:
    lease = talk.begin()
    only = TurnRecord(ending=ending(RunStatus.failed))

    store.turns.append(lease, 0, only)

    assert talk.turns()[0].records == [only]
