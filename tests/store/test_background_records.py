import secrets
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import chain

import pytest
from tests.clock import CLOCK
from tests.store.conftest import Cloud, lose_first_answer
from tests.store.response_samples import Responder

from stint.domain.errors import Conflict, Interrupted, NotFound
from stint.store.background import BackgroundStore
from stint.store.response_leases import LeaseState, ResponseLease


class Job:
    """A background response that is stored, and who asks for it."""

    def __init__(self, cloud: Cloud, tenant: str) -> None:
        self.background: BackgroundStore = cloud.store.background
        self.leases = cloud.store.response_leases
        self.tenant = tenant
        self.response_id = Responder(cloud.store, tenant).begin(background=True)
        self.ids = (tenant, self.response_id)

    def enter(self, seconds: float = 30) -> ResponseLease:
        return self.leases.acquire(*self.ids, seconds)

    def look(self) -> LeaseState:
        return self.leases.get_state(*self.ids)

    def outcome(self) -> str:
        try:
            return f"attempt {self.enter().attempts}"
        except Conflict as conflict:
            return conflict.code

    def put(self, *batches: int) -> None:
        """Store batches of so many events, each of which is its number."""
        first = 0
        for count in batches:
            self.background.put_events(*self.ids, first, [str(first + place) for place in range(count)])
            first += count

    def events(self, after_seq: int = -1, *, at_batch: bool = False) -> list[list[str]]:
        return list(self.background.events(*self.ids, after_seq, at_batch=at_batch))


@pytest.fixture
def job(cloud: Cloud, tenant: str) -> Job:
    return Job(cloud, tenant)


@pytest.fixture(params=["cloud", "mocked"])
def any_job(request: pytest.FixtureRequest, tenant: str) -> Job:
    """Two implementations of DynamoDB that know nothing of each other."""
    return Job(request.getfixturevalue(request.param), tenant)


def test_nobody_has_taken_up_a_new_response(job: Job) -> None:
    state = job.look()

    assert state == LeaseState()
    assert (state.held, state.lapsed, state.exhausted) == (False, False, False)


def test_a_response_is_taken_up_with_one_write_of_one_unit(cloud: Cloud, job: Job) -> None:
    cloud.forget()

    with CLOCK.stop():
        lease = job.enter()
        until = round((time.time() + 30) * 1000)

    assert cloud.units == {"UpdateItem": 1}
    assert lease.attempts == 1
    state = job.look()
    assert (state.attempts, state.lease_id, state.held, state.lapsed) == (1, lease.lease_id, True, False)
    assert state.lease_until == until


def test_a_response_that_is_being_run_is_not_taken_up(any_job: Job) -> None:
    any_job.enter()

    with pytest.raises(Conflict, match="is running") as raised:
        any_job.enter()

    assert raised.value.code == "response_running"


def test_a_response_is_taken_up_three_times(any_job: Job) -> None:
    for attempt in (1, 2, 3):
        assert any_job.enter(seconds=-0.001).attempts == attempt

    with pytest.raises(Conflict, match="started 3 times") as raised:
        any_job.enter()

    assert raised.value.code == "attempts_exhausted"
    assert any_job.look().exhausted
    assert any_job.look().lapsed


def test_the_third_attempt_is_no_failure_while_it_runs(job: Job) -> None:
    for _ in range(2):
        job.enter(seconds=-0.001)
    job.enter()

    assert not job.look().exhausted
    assert job.outcome() == "response_running"


def test_a_lease_that_was_lost_is_not_renewed(any_job: Job) -> None:
    dead = any_job.enter(seconds=-0.001)
    lease = any_job.enter()

    with pytest.raises(Interrupted, match="taken over"):
        dead.renew(30)

    assert any_job.look().lease_id == lease.lease_id


def test_a_renewed_lease_of_a_response_is_held(job: Job) -> None:
    lease = job.enter(seconds=-0.001)

    state = lease.renew(30)

    assert state.held
    assert job.outcome() == "response_running"


@pytest.mark.parametrize("running", [False, True])
def test_a_cancellation_is_noted_whether_anybody_runs_the_response(any_job: Job, running: bool) -> None:
    lease = any_job.enter() if running else None

    with CLOCK.stop():
        state = any_job.leases.cancel(*any_job.ids)
        now = int(time.time())

    assert state == any_job.look()
    assert state.cancelled_at == now
    if lease:
        assert lease.renew(30).cancelled_at == state.cancelled_at
    with pytest.raises(Conflict, match="was cancelled") as raised:
        any_job.enter()
    assert raised.value.code == "response_cancelled"


def test_sixteen_workers_take_a_response_up_once(job: Job) -> None:
    with ThreadPoolExecutor(16) as threads:
        outcomes = Counter(threads.map(lambda _: job.outcome(), range(32)))

    assert outcomes == {"attempt 1": 1, "response_running": 31}


def test_a_lapsed_lease_has_one_heir(job: Job) -> None:
    job.enter(seconds=-0.001)

    with ThreadPoolExecutor(16) as threads:
        outcomes = Counter(threads.map(lambda _: job.outcome(), range(32)))

    assert outcomes == {"attempt 2": 1, "response_running": 31}


@pytest.mark.parametrize("dead", [False, True])
def test_a_lease_of_a_response_whose_answer_was_lost_is_held_all_the_same(
    own_cloud: Cloud, tenant: str, dead: bool
) -> None:
    job = Job(own_cloud, tenant)
    if dead:
        job.enter(seconds=-0.001)
    sent = lose_first_answer(own_cloud, "UpdateItem", after=200)

    lease = job.enter()

    assert sent[-2:] == [200, 400]
    assert lease.attempts == (2 if dead else 1)
    assert job.look().lease_id == lease.lease_id


def test_a_lapse_is_claimed_by_one_of_many(job: Job) -> None:
    for lapse in range(2):
        job.enter(seconds=-0.001)
        state = job.look()
        with ThreadPoolExecutor(16) as threads:
            claims = list(threads.map(lambda _, seen=state: job.leases.claim_requeue(*job.ids, seen), range(16)))

        assert claims.count(True) == 1, f"lapse {lapse}"


@pytest.mark.parametrize("meanwhile", ["nothing", "renewed", "cancelled", "taken over"])
def test_a_lapse_that_is_over_cannot_be_claimed(any_job: Job, meanwhile: str) -> None:
    lease = any_job.enter(seconds=-0.001)
    state = any_job.look()
    if meanwhile == "renewed":
        lease.renew(30)
    elif meanwhile == "cancelled":
        any_job.leases.cancel(*any_job.ids)
    elif meanwhile == "taken over":
        any_job.enter()

    assert any_job.leases.claim_requeue(*any_job.ids, state) is (meanwhile == "nothing")


def test_a_response_that_nobody_took_up_cannot_be_claimed(job: Job) -> None:
    assert not job.leases.claim_requeue(*job.ids, job.look())


@pytest.mark.parametrize(
    ("after", "shown"),
    [
        (-1, [["0", "1", "2"], ["3"], ["4", "5", "6", "7"]]),
        (0, [["1", "2"], ["3"], ["4", "5", "6", "7"]]),
        (1, [["2"], ["3"], ["4", "5", "6", "7"]]),
        (2, [["3"], ["4", "5", "6", "7"]]),
        (3, [["4", "5", "6", "7"]]),
        (6, [["7"]]),
        (7, []),
        (99, []),
    ],
)
def test_stored_events_are_read_from_any_place(any_job: Job, after: int, shown: list[list[str]]) -> None:
    any_job.enter()
    any_job.put(3, 1, 4)

    assert any_job.events(after) == shown


def test_a_response_without_a_stored_stream_has_no_events(any_job: Job) -> None:
    any_job.enter()

    assert any_job.events() == any_job.events(5) == []


def test_whoever_follows_reads_with_one_call(cloud: Cloud, job: Job) -> None:
    job.put(3, 2)
    cloud.forget()

    assert job.events(2, at_batch=True) == [["3", "4"]]
    assert job.events(4, at_batch=True) == []
    assert cloud.calls == {"Query": 2}


def test_many_events_keep_their_order(job: Job) -> None:
    job.put(*range(1, 16))

    assert list(chain(*job.events())) == [str(number) for number in range(120)]


def test_a_batch_is_stored_by_one_of_two_workers(job: Job) -> None:
    job.put(2)

    with pytest.raises(Interrupted):
        job.background.put_events(*job.ids, 0, ["late"])

    assert job.events() == [["0", "1"]]


def test_a_frozen_stream_takes_nothing_but_its_end(any_job: Job) -> None:
    any_job.put(2)

    for _ in range(2):
        any_job.background.freeze(*any_job.ids, 2)
    with pytest.raises(Interrupted):
        any_job.background.put_events(*any_job.ids, 2, ["late"])
    frozen = any_job.events()
    any_job.background.end_events(*any_job.ids, 2, ["end"])

    assert frozen == [["0", "1"]]
    assert any_job.events() == [["0", "1"], ["end"]]
    assert any_job.events(1) == any_job.events(1, at_batch=True) == [["end"]]
    for write in (any_job.background.end_events, any_job.background.put_events):
        with pytest.raises(Interrupted):
            write(*any_job.ids, 2, ["another end"])


def test_a_stream_is_frozen_at_its_end_alone(job: Job) -> None:
    job.put(2, 1)

    with pytest.raises(Interrupted):
        job.background.freeze(*job.ids, 2)

    job.background.end_events(*job.ids, 3, ["end"])
    assert job.events() == [["0", "1"], ["2"], ["end"]]


def test_a_frozen_stream_is_sealed_when_its_response_is_deleted(job: Job) -> None:
    job.put(1)
    job.background.freeze(*job.ids, 1)

    job.background.stop(*job.ids)

    for write in (job.background.end_events, job.background.put_events):
        with pytest.raises(Interrupted):
            write(*job.ids, 1, ["late"])
    with pytest.raises(Interrupted):
        job.background.freeze(*job.ids, 1)


@pytest.mark.parametrize("size", [10, 600_000])
def test_the_end_of_a_stream_whose_answer_was_lost_is_stored(own_cloud: Cloud, tenant: str, size: int) -> None:
    job, end = Job(own_cloud, tenant), secrets.token_urlsafe(size)
    job.background.freeze(*job.ids, 0)
    sent = lose_first_answer(own_cloud, "PutItem")

    job.background.end_events(*job.ids, 0, [end])

    assert sent == [200, 400]
    assert job.events() == [[end]]


def test_a_batch_of_events_may_be_of_any_size(cloud: Cloud, job: Job) -> None:
    texts = [secrets.token_urlsafe(200_000) for _ in range(4)]

    job.background.put_events(*job.ids, 0, texts)

    assert job.events() == [texts]
    assert len(cloud.blobs(job.tenant)) == 1


def test_a_batch_of_small_events_costs_one_unit(cloud: Cloud, job: Job) -> None:
    event = '{"type":"response.output_text.delta","sequence_number":7,"item_id":"msg_1","delta":"and so on"}'
    cloud.forget()

    job.background.put_events(*job.ids, 0, [event] * 20)

    assert cloud.units == {"PutItem": 1}


def test_what_is_no_response_is_not_found(job: Job) -> None:
    for call in (job.leases.get_state, job.leases.cancel):
        with pytest.raises(NotFound):
            call(job.tenant, "nonsense")
