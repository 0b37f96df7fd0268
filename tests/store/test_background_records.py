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


class BackgroundRecord:
    """A stored background response, and acquisitions of its lease."""

    def __init__(self, cloud: Cloud, tenant: str, response_id: str) -> None:
        self.background: BackgroundStore = cloud.store.background
        self.leases = cloud.store.response_leases
        self.tenant = tenant
        self.response_id = response_id
        self.ids = (tenant, response_id)

    @classmethod
    async def create(cls, cloud: Cloud, tenant: str) -> Self:
        return cls(cloud, tenant, await Responder(cloud.store, tenant).begin(background=True))

    async def acquire(self, seconds: float = 30) -> ResponseLease:
        return await self.leases.acquire(*self.ids, seconds)

    async def get_state(self) -> LeaseState:
        return await self.leases.get_state(*self.ids)

    async def outcome(self) -> str:
        try:
            return f"attempt {(await self.acquire()).attempts}"
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
async def response(cloud: Cloud, tenant: str) -> BackgroundRecord:
    return await BackgroundRecord.create(cloud, tenant)


@pytest.fixture(params=["cloud", "mocked"])
async def any_response(request: pytest.FixtureRequest, tenant: str) -> BackgroundRecord:
    """Two implementations of DynamoDB that know nothing of each other."""
    return await BackgroundRecord.create(request.getfixturevalue(request.param), tenant)


async def test_nobody_has_taken_up_a_new_response(response: BackgroundRecord) -> None:
    state = await response.get_state()

    assert state == LeaseState()
    assert (state.held, state.lapsed, state.exhausted) == (False, False, False)


async def test_a_response_is_taken_up_with_one_write_of_one_unit(cloud: Cloud, response: BackgroundRecord) -> None:
    cloud.forget()

    with CLOCK.stop():
        lease = await response.acquire()
        until = round((time.time() + 30) * 1000)

    assert cloud.units == {"UpdateItem": 1}
    assert lease.attempts == 1
    state = await response.get_state()
    assert (state.attempts, state.lease_id, state.held, state.lapsed) == (1, lease.lease_id, True, False)
    assert state.lease_until == until


async def test_a_response_that_is_being_run_is_not_taken_up(any_response: BackgroundRecord) -> None:
    await any_response.acquire()

    with pytest.raises(Conflict, match="is running") as raised:
        await any_response.acquire()

    assert raised.value.code == "response_running"


async def test_a_response_is_taken_up_three_times(any_response: BackgroundRecord) -> None:
    for attempt in (1, 2, 3):
        assert (await any_response.acquire(seconds=-0.001)).attempts == attempt

    with pytest.raises(Conflict, match="started 3 times") as raised:
        await any_response.acquire()

    assert raised.value.code == "attempts_exhausted"
    assert (await any_response.get_state()).exhausted
    assert (await any_response.get_state()).lapsed


async def test_the_third_attempt_is_no_failure_while_it_runs(response: BackgroundRecord) -> None:
    for _ in range(2):
        await response.acquire(seconds=-0.001)
    await response.acquire()

    assert not (await response.get_state()).exhausted
    assert await response.outcome() == "response_running"


async def test_a_lease_that_was_lost_is_not_renewed(any_response: BackgroundRecord) -> None:
    dead = await any_response.acquire(seconds=-0.001)
    lease = await any_response.acquire()

    with pytest.raises(Interrupted, match="taken over"):
        await dead.renew(30)

    assert (await any_response.get_state()).lease_id == lease.lease_id


async def test_a_renewed_lease_of_a_response_is_held(response: BackgroundRecord) -> None:
    lease = await response.acquire(seconds=-0.001)

    state = await lease.renew(30)

    assert state.held
    assert await response.outcome() == "response_running"


@pytest.mark.parametrize("running", [False, True])
async def test_a_cancellation_is_noted_whether_anybody_runs_the_response(
    any_response: BackgroundRecord, running: bool
) -> None:
    lease = await any_response.acquire() if running else None

    with CLOCK.stop():
        state = await any_response.leases.cancel(*any_response.ids)
        now = int(time.time())

    assert state == await any_response.get_state()
    assert state.cancelled_at == now
    if lease:
        assert (await lease.renew(30)).cancelled_at == state.cancelled_at
    with pytest.raises(Conflict, match="was cancelled") as raised:
        await any_response.acquire()
    assert raised.value.code == "response_cancelled"


async def test_one_of_32_workers_acquires_the_lease(response: BackgroundRecord) -> None:
    outcomes = Counter(await asyncio.gather(*(response.outcome() for _ in range(32))))

    assert outcomes == {"attempt 1": 1, "response_running": 31}


async def test_a_lapsed_lease_has_one_heir(response: BackgroundRecord) -> None:
    await response.acquire(seconds=-0.001)

    outcomes = Counter(await asyncio.gather(*(response.outcome() for _ in range(32))))

    assert outcomes == {"attempt 2": 1, "response_running": 31}


@pytest.mark.parametrize("dead", [False, True])
async def test_a_lease_of_a_response_whose_answer_was_lost_is_held_all_the_same(
    own_cloud: Cloud, tenant: str, dead: bool
) -> None:
    response = await BackgroundRecord.create(own_cloud, tenant)
    if dead:
        await response.acquire(seconds=-0.001)
    sent = own_cloud.proxy.lose_first_answer("UpdateItem", after=200)

    lease = await response.acquire()

    assert sent[-2:] == [200, 400]
    assert lease.attempts == (2 if dead else 1)
    assert (await response.get_state()).lease_id == lease.lease_id


async def test_a_lapse_is_claimed_by_one_of_many(response: BackgroundRecord) -> None:
    for lapse in range(2):
        await response.acquire(seconds=-0.001)
        state = await response.get_state()
        claims = await asyncio.gather(*(response.leases.claim_requeue(*response.ids, state) for _ in range(16)))

        assert claims.count(True) == 1, f"lapse {lapse}"


@pytest.mark.parametrize("meanwhile", ["nothing", "renewed", "cancelled", "taken over"])
async def test_a_lapse_that_is_over_cannot_be_claimed(any_response: BackgroundRecord, meanwhile: str) -> None:
    lease = await any_response.acquire(seconds=-0.001)
    state = await any_response.get_state()
    if meanwhile == "renewed":
        await lease.renew(30)
    elif meanwhile == "cancelled":
        await any_response.leases.cancel(*any_response.ids)
    elif meanwhile == "taken over":
        await any_response.acquire()

    assert await any_response.leases.claim_requeue(*any_response.ids, state) is (meanwhile == "nothing")


async def test_a_response_that_nobody_took_up_cannot_be_claimed(response: BackgroundRecord) -> None:
    assert not await response.leases.claim_requeue(*response.ids, await response.get_state())


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
async def test_stored_events_are_read_from_any_place(
    any_response: BackgroundRecord, after: int, shown: list[list[str]]
) -> None:
    await any_response.acquire()
    await any_response.put(3, 1, 4)

    assert await any_response.events(after) == shown


async def test_a_response_without_a_stored_stream_has_no_events(any_response: BackgroundRecord) -> None:
    await any_response.acquire()

    assert await any_response.events() == await any_response.events(5) == []


async def test_whoever_follows_reads_with_one_call(cloud: Cloud, response: BackgroundRecord) -> None:
    await response.put(3, 2)
    cloud.forget()

    assert await response.events(2, at_batch=True) == [["3", "4"]]
    assert await response.events(4, at_batch=True) == []
    assert cloud.calls == {"Query": 2}


async def test_many_events_keep_their_order(response: BackgroundRecord) -> None:
    await response.put(*range(1, 16))

    assert list(chain(*await response.events())) == [str(number) for number in range(120)]


async def test_a_batch_is_stored_by_one_of_two_workers(response: BackgroundRecord) -> None:
    await response.put(2)

    with pytest.raises(Interrupted):
        await response.background.put_events(*response.ids, 0, ["late"])

    assert await response.events() == [["0", "1"]]


async def test_a_frozen_stream_takes_nothing_but_its_end(any_response: BackgroundRecord) -> None:
    await any_response.put(2)

    for _ in range(2):
        await any_response.background.freeze(*any_response.ids, 2)
    with pytest.raises(Interrupted):
        await any_response.background.put_events(*any_response.ids, 2, ["late"])
    frozen = await any_response.events()
    await any_response.background.end_events(*any_response.ids, 2, ["end"])

    assert frozen == [["0", "1"]]
    assert await any_response.events() == [["0", "1"], ["end"]]
    assert await any_response.events(1) == await any_response.events(1, at_batch=True) == [["end"]]
    for write in (any_response.background.end_events, any_response.background.put_events):
        with pytest.raises(Interrupted):
            await write(*any_response.ids, 2, ["another end"])


async def test_a_stream_is_frozen_at_its_end_alone(response: BackgroundRecord) -> None:
    await response.put(2, 1)

    with pytest.raises(Interrupted):
        await response.background.freeze(*response.ids, 2)

    await response.background.end_events(*response.ids, 3, ["end"])
    assert await response.events() == [["0", "1"], ["2"], ["end"]]


async def test_a_frozen_stream_is_sealed_when_its_response_is_deleted(response: BackgroundRecord) -> None:
    await response.put(1)
    await response.background.freeze(*response.ids, 1)

    await response.background.stop(*response.ids)

    for write in (response.background.end_events, response.background.put_events):
        with pytest.raises(Interrupted):
            await write(*response.ids, 1, ["late"])
    with pytest.raises(Interrupted):
        await response.background.freeze(*response.ids, 1)


@pytest.mark.parametrize("size", [10, 600_000])
async def test_the_end_of_a_stream_whose_answer_was_lost_is_stored(own_cloud: Cloud, tenant: str, size: int) -> None:
    response, end = await BackgroundRecord.create(own_cloud, tenant), secrets.token_urlsafe(size)
    await response.background.freeze(*response.ids, 0)
    sent = own_cloud.proxy.lose_first_answer("PutItem")

    await response.background.end_events(*response.ids, 0, [end])

    assert sent == [200, 400]
    assert await response.events() == [[end]]


async def test_a_batch_of_events_may_be_of_any_size(cloud: Cloud, response: BackgroundRecord) -> None:
    texts = [secrets.token_urlsafe(200_000) for _ in range(4)]

    await response.background.put_events(*response.ids, 0, texts)

    assert await response.events() == [texts]
    assert len(cloud.blobs(response.tenant)) == 1


async def test_a_batch_of_small_events_costs_one_unit(cloud: Cloud, response: BackgroundRecord) -> None:
    event = '{"type":"response.output_text.delta","sequence_number":7,"item_id":"msg_1","delta":"and so on"}'
    cloud.forget()

    await response.background.put_events(*response.ids, 0, [event] * 20)

    assert cloud.units == {"PutItem": 1}


async def test_what_is_no_response_is_not_found(response: BackgroundRecord) -> None:
    for call in (response.leases.get_state, response.leases.cancel):
        with pytest.raises(NotFound):
            await call(response.tenant, "nonsense")
