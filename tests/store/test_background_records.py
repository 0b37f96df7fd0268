import asyncio
import secrets
import time
from collections import Counter
from itertools import chain
from typing import Self

import pytest
from tests.clock import CLOCK
from tests.store.conftest import Cloud
from tests.store.response_samples import Responder

from stint.domain.errors import Conflict, Interrupted, NotFound
from stint.store.background import BackgroundStore
from stint.store.response_leases import LeaseState, ResponseLease


class Job:
    """A background response that is stored, and who asks for it."""

    def __init__(self, cloud: Cloud, tenant: str, response_id: str) -> None:
        self.background: BackgroundStore = cloud.store.background
        self.leases = cloud.store.response_leases
        self.tenant = tenant
        self.response_id = response_id
        self.ids = (tenant, response_id)

    @classmethod
    async def create(cls, cloud: Cloud, tenant: str) -> Self:
        return cls(cloud, tenant, await Responder(cloud.store, tenant).begin(background=True))

    async def enter(self, seconds: float = 30) -> ResponseLease:
        return await self.leases.acquire(*self.ids, seconds)

    async def look(self) -> LeaseState:
        return await self.leases.get_state(*self.ids)

    async def outcome(self) -> str:
        try:
            return f"attempt {(await self.enter()).attempts}"
        except Conflict as conflict:
            return conflict.code

    async def put(self, *batches: int) -> None:
        """Store batches of so many events, each of which is its number."""
        first = 0
        for count in batches:
            await self.background.put_events(*self.ids, first, [str(first + place) for place in range(count)])
            first += count

    async def events(self, after_seq: int = -1, *, at_batch: bool = False) -> list[list[str]]:
        return [batch async for batch in self.background.events(*self.ids, after_seq, at_batch=at_batch)]


@pytest.fixture
async def job(cloud: Cloud, tenant: str) -> Job:
    return await Job.create(cloud, tenant)


@pytest.fixture(params=["cloud", "mocked"])
async def any_job(request: pytest.FixtureRequest, tenant: str) -> Job:
    """Two implementations of DynamoDB that know nothing of each other."""
    return await Job.create(request.getfixturevalue(request.param), tenant)


async def test_nobody_has_taken_up_a_new_response(job: Job) -> None:
    state = await job.look()

    assert state == LeaseState()
    assert (state.held, state.lapsed, state.exhausted) == (False, False, False)


async def test_a_response_is_taken_up_with_one_write_of_one_unit(cloud: Cloud, job: Job) -> None:
    cloud.forget()

    with CLOCK.stop():
        lease = await job.enter()
        until = round((time.time() + 30) * 1000)

    assert cloud.units == {"UpdateItem": 1}
    assert lease.attempts == 1
    state = await job.look()
    assert (state.attempts, state.lease_id, state.held, state.lapsed) == (1, lease.lease_id, True, False)
    assert state.lease_until == until


async def test_a_response_that_is_being_run_is_not_taken_up(any_job: Job) -> None:
    await any_job.enter()

    with pytest.raises(Conflict, match="is running") as raised:
        await any_job.enter()

    assert raised.value.code == "response_running"


async def test_a_response_is_taken_up_three_times(any_job: Job) -> None:
    for attempt in (1, 2, 3):
        assert (await any_job.enter(seconds=-0.001)).attempts == attempt

    with pytest.raises(Conflict, match="started 3 times") as raised:
        await any_job.enter()

    assert raised.value.code == "attempts_exhausted"
    assert (await any_job.look()).exhausted
    assert (await any_job.look()).lapsed


async def test_the_third_attempt_is_no_failure_while_it_runs(job: Job) -> None:
    for _ in range(2):
        await job.enter(seconds=-0.001)
    await job.enter()

    assert not (await job.look()).exhausted
    assert await job.outcome() == "response_running"


async def test_a_lease_that_was_lost_is_not_renewed(any_job: Job) -> None:
    dead = await any_job.enter(seconds=-0.001)
    lease = await any_job.enter()

    with pytest.raises(Interrupted, match="taken over"):
        await dead.renew(30)

    assert (await any_job.look()).lease_id == lease.lease_id


async def test_a_renewed_lease_of_a_response_is_held(job: Job) -> None:
    lease = await job.enter(seconds=-0.001)

    state = await lease.renew(30)

    assert state.held
    assert await job.outcome() == "response_running"


@pytest.mark.parametrize("running", [False, True])
async def test_a_cancellation_is_noted_whether_anybody_runs_the_response(any_job: Job, running: bool) -> None:
    lease = await any_job.enter() if running else None

    with CLOCK.stop():
        state = await any_job.leases.cancel(*any_job.ids)
        now = int(time.time())

    assert state == await any_job.look()
    assert state.cancelled_at == now
    if lease:
        assert (await lease.renew(30)).cancelled_at == state.cancelled_at
    with pytest.raises(Conflict, match="was cancelled") as raised:
        await any_job.enter()
    assert raised.value.code == "response_cancelled"


async def test_sixteen_workers_take_a_response_up_once(job: Job) -> None:
    outcomes = Counter(await asyncio.gather(*(job.outcome() for _ in range(32))))

    assert outcomes == {"attempt 1": 1, "response_running": 31}


async def test_a_lapsed_lease_has_one_heir(job: Job) -> None:
    await job.enter(seconds=-0.001)

    outcomes = Counter(await asyncio.gather(*(job.outcome() for _ in range(32))))

    assert outcomes == {"attempt 2": 1, "response_running": 31}


@pytest.mark.parametrize("dead", [False, True])
async def test_a_lease_of_a_response_whose_answer_was_lost_is_held_all_the_same(
    own_cloud: Cloud, tenant: str, dead: bool
) -> None:
    job = await Job.create(own_cloud, tenant)
    if dead:
        await job.enter(seconds=-0.001)
    sent = own_cloud.proxy.lose_first_answer("UpdateItem", after=200)

    lease = await job.enter()

    assert sent[-2:] == [200, 400]
    assert lease.attempts == (2 if dead else 1)
    assert (await job.look()).lease_id == lease.lease_id


async def test_a_lapse_is_claimed_by_one_of_many(job: Job) -> None:
    for lapse in range(2):
        await job.enter(seconds=-0.001)
        state = await job.look()
        claims = await asyncio.gather(*(job.leases.claim_requeue(*job.ids, state) for _ in range(16)))

        assert claims.count(True) == 1, f"lapse {lapse}"


@pytest.mark.parametrize("meanwhile", ["nothing", "renewed", "cancelled", "taken over"])
async def test_a_lapse_that_is_over_cannot_be_claimed(any_job: Job, meanwhile: str) -> None:
    lease = await any_job.enter(seconds=-0.001)
    state = await any_job.look()
    if meanwhile == "renewed":
        await lease.renew(30)
    elif meanwhile == "cancelled":
        await any_job.leases.cancel(*any_job.ids)
    elif meanwhile == "taken over":
        await any_job.enter()

    assert await any_job.leases.claim_requeue(*any_job.ids, state) is (meanwhile == "nothing")


async def test_a_response_that_nobody_took_up_cannot_be_claimed(job: Job) -> None:
    assert not await job.leases.claim_requeue(*job.ids, await job.look())


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
async def test_stored_events_are_read_from_any_place(any_job: Job, after: int, shown: list[list[str]]) -> None:
    await any_job.enter()
    await any_job.put(3, 1, 4)

    assert await any_job.events(after) == shown


async def test_a_response_without_a_stored_stream_has_no_events(any_job: Job) -> None:
    await any_job.enter()

    assert await any_job.events() == await any_job.events(5) == []


async def test_whoever_follows_reads_with_one_call(cloud: Cloud, job: Job) -> None:
    await job.put(3, 2)
    cloud.forget()

    assert await job.events(2, at_batch=True) == [["3", "4"]]
    assert await job.events(4, at_batch=True) == []
    assert cloud.calls == {"Query": 2}


async def test_many_events_keep_their_order(job: Job) -> None:
    await job.put(*range(1, 16))

    assert list(chain(*await job.events())) == [str(number) for number in range(120)]


async def test_a_batch_is_stored_by_one_of_two_workers(job: Job) -> None:
    await job.put(2)

    with pytest.raises(Interrupted):
        await job.background.put_events(*job.ids, 0, ["late"])

    assert await job.events() == [["0", "1"]]


async def test_a_frozen_stream_takes_nothing_but_its_end(any_job: Job) -> None:
    await any_job.put(2)

    for _ in range(2):
        await any_job.background.freeze(*any_job.ids, 2)
    with pytest.raises(Interrupted):
        await any_job.background.put_events(*any_job.ids, 2, ["late"])
    frozen = await any_job.events()
    await any_job.background.end_events(*any_job.ids, 2, ["end"])

    assert frozen == [["0", "1"]]
    assert await any_job.events() == [["0", "1"], ["end"]]
    assert await any_job.events(1) == await any_job.events(1, at_batch=True) == [["end"]]
    for write in (any_job.background.end_events, any_job.background.put_events):
        with pytest.raises(Interrupted):
            await write(*any_job.ids, 2, ["another end"])


async def test_a_stream_is_frozen_at_its_end_alone(job: Job) -> None:
    await job.put(2, 1)

    with pytest.raises(Interrupted):
        await job.background.freeze(*job.ids, 2)

    await job.background.end_events(*job.ids, 3, ["end"])
    assert await job.events() == [["0", "1"], ["2"], ["end"]]


async def test_a_frozen_stream_is_sealed_when_its_response_is_deleted(job: Job) -> None:
    await job.put(1)
    await job.background.freeze(*job.ids, 1)

    await job.background.stop(*job.ids)

    for write in (job.background.end_events, job.background.put_events):
        with pytest.raises(Interrupted):
            await write(*job.ids, 1, ["late"])
    with pytest.raises(Interrupted):
        await job.background.freeze(*job.ids, 1)


@pytest.mark.parametrize("size", [10, 600_000])
async def test_the_end_of_a_stream_whose_answer_was_lost_is_stored(own_cloud: Cloud, tenant: str, size: int) -> None:
    job, end = await Job.create(own_cloud, tenant), secrets.token_urlsafe(size)
    await job.background.freeze(*job.ids, 0)
    sent = own_cloud.proxy.lose_first_answer("PutItem")

    await job.background.end_events(*job.ids, 0, [end])

    assert sent == [200, 400]
    assert await job.events() == [[end]]


async def test_a_batch_of_events_may_be_of_any_size(cloud: Cloud, job: Job) -> None:
    texts = [secrets.token_urlsafe(200_000) for _ in range(4)]

    await job.background.put_events(*job.ids, 0, texts)

    assert await job.events() == [texts]
    assert len(cloud.blobs(job.tenant)) == 1


async def test_a_batch_of_small_events_costs_one_unit(cloud: Cloud, job: Job) -> None:
    event = '{"type":"response.output_text.delta","sequence_number":7,"item_id":"msg_1","delta":"and so on"}'
    cloud.forget()

    await job.background.put_events(*job.ids, 0, [event] * 20)

    assert cloud.units == {"PutItem": 1}


async def test_what_is_no_response_is_not_found(job: Job) -> None:
    for call in (job.leases.get_state, job.leases.cancel):
        with pytest.raises(NotFound):
            await call(job.tenant, "nonsense")
