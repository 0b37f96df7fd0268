"""Sessions of two key layouts, and processes of both and of the release before, which compete for one session."""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager

import pytest
from tests.clock import CLOCK
from tests.store.conftest import Cloud
from tests.store.proxy_rules import Exchange, Rule
from tests.store.record_samples import SessionFixture, agent, session

from stint.domain.errors import Conflict, Interrupted, NotFound
from stint.domain.ids import new_id
from stint.domain.llama_stack.sessions import Session
from stint.domain.paging import Window
from stint.domain.run_signals import RunSignals, TurnRef
from stint.domain.schema import now
from stint.store import keys
from stint.store.failures import ConditionFailed
from stint.store.items import Item
from stint.store.owners import hash_user
from stint.store.sessions import LastTurn
from stint.store.store import Store
from stint.store.table import LIVE, Table

LISTED = {"pk", "sk", "name", "started_at", "moved_at"}


@pytest.fixture
def old(cloud: Cloud) -> Store:
    return cloud.other_process("compatible")


@pytest.fixture
async def old_session(old: Store, tenant: str) -> SessionFixture:
    """Return a session in the form of earlier releases, as a process with `compatible` sees it."""
    return await SessionFixture.create(old, tenant)


@pytest.fixture
def new_session(cloud: Cloud, old_session: SessionFixture) -> SessionFixture:
    """Return the same session as a process with `spread` sees it."""
    return SessionFixture(cloud.other_process(), *old_session.ids)


async def records_of(cloud: Cloud, fixture: SessionFixture) -> tuple[Item | None, Item | None]:
    return await cloud.table.get(keys.session(*fixture.ids)), await cloud.table.get(keys.session_state(*fixture.ids))


async def test_an_old_session_stays_in_the_list_while_no_process_has_the_new_layout(
    cloud: Cloud, old_session: SessionFixture
) -> None:
    await old_session.turn()

    entry, state = await records_of(cloud, old_session)

    assert state is None
    assert entry is not None
    assert "last_turn" in entry


async def test_a_compatible_turn_costs_the_same_units_as_one_of_the_release_before(
    cloud: Cloud, old_session: SessionFixture
) -> None:
    await old_session.turn()
    cloud.forget()

    await (await old_session.acquire()).release()

    assert cloud.units == {"UpdateItem": 2}


async def test_an_old_session_moves_at_its_first_lease(
    cloud: Cloud, old_session: SessionFixture, new_session: SessionFixture
) -> None:
    last = await old_session.turn()
    before, _ = await records_of(cloud, old_session)
    cloud.forget()

    lease = await new_session.acquire()

    assert lease.last == LastTurn(last, 1)
    assert cloud.calls == {"UpdateItem": 2, "GetItem": 1, "TransactWriteItems": 1}
    assert cloud.units["TransactWriteItems"] == 4
    entry, state = await records_of(cloud, old_session)
    assert before is not None
    assert entry is not None
    assert state is not None
    assert entry.keys() == LISTED
    assert {state[name] == before[name] for name in ("name", "started_at", "last_turn", "last_records")} == {True}


async def test_a_moved_session_costs_no_write_to_the_list(cloud: Cloud, new_session: SessionFixture) -> None:
    await new_session.turn()
    entry, _ = await records_of(cloud, new_session)
    cloud.forget()

    await new_session.turn()

    assert cloud.units["UpdateItem"] == 2
    assert (await records_of(cloud, new_session))[0] == entry


async def test_a_session_with_a_running_turn_does_not_move(
    old_session: SessionFixture, new_session: SessionFixture
) -> None:
    running = await old_session.acquire()

    for resume in (False, True):
        with pytest.raises(Conflict) as raised:
            await new_session.acquire(resume=resume)
        assert raised.value.code == "session_locked"
    assert await new_session.store.session_leases.find_holder(*new_session.ids) == running.turn_id

    await running.renew(30)
    await running.release()
    await new_session.acquire()


async def test_a_holder_that_is_late_loses_its_lease_to_a_move(
    old_session: SessionFixture, new_session: SessionFixture
) -> None:
    late = await old_session.acquire(seconds=-0.001)

    lease = await new_session.acquire()

    assert lease.taken_over_turn == late.turn_id
    with pytest.raises(Interrupted):
        await late.renew(30)
    await late.release()  # changes nothing
    assert await old_session.store.session_leases.find_holder(*old_session.ids) == lease.turn_id


async def test_a_move_waits_for_the_lease_of_a_dead_process_with_a_wrong_clock(
    old_session: SessionFixture, new_session: SessionFixture
) -> None:
    with CLOCK.wrong(3_600):
        await old_session.acquire()

    with pytest.raises(Conflict):
        await new_session.acquire()
    CLOCK.move(31)
    await new_session.acquire()


@pytest.mark.parametrize("layout", ["spread", "compatible"])
async def test_signals_reach_a_turn_of_either_layout(
    old_session: SessionFixture, new_session: SessionFixture, layout: str
) -> None:
    fixture, other = (new_session, old_session) if layout == "spread" else (old_session, new_session)
    lease = await fixture.acquire()
    run = TurnRef(fixture.agent_id, fixture.session_id, lease.turn_id)

    for sender in (other, fixture):
        assert await sender.store.run_signals.cancel_turn(fixture.tenant, run)

    _, signals = await fixture.store.run_signals.read(fixture.tenant, [run])
    assert signals == {run: RunSignals(cancelled=True)}


@pytest.mark.parametrize("layout", ["spread", "compatible"])
async def test_an_end_user_keeps_a_session_of_either_layout(
    old_session: SessionFixture, new_session: SessionFixture, layout: str
) -> None:
    fixture, other = (new_session, old_session) if layout == "spread" else (old_session, new_session)
    await fixture.turn()
    owner = hash_user("ann")

    assert (await other.store.session_leases.claim(*other.ids, owner)).owner == owner

    assert (await fixture.store.session_leases.claim(*fixture.ids, "")).owner == owner


class DeletedBetween(Rule):
    """Loses the answer of the first call of an operation, and runs a deletion before its retry."""

    def __init__(self, operation: str, delete: Callable[[], Coroutine[None, None, None]]) -> None:
        self._operation, self._delete = operation, delete
        self._loop = asyncio.get_running_loop()
        self._lost = ""
        self.retried = False

    async def before(self, exchange: Exchange) -> None:
        if exchange.call_id == self._lost:
            self.retried = True
            await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._delete(), self._loop))

    async def after(self, exchange: Exchange) -> None:
        if not self._lost and exchange.operation == self._operation:
            self._lost = exchange.call_id
            exchange.close()


async def test_a_retry_of_a_creation_does_not_bring_a_deleted_session_back(own_cloud: Cloud, tenant: str) -> None:
    created, begun = agent(), session()
    await own_cloud.store.agents.create(tenant, created)
    ids = tenant, created.agent_id, begun.session_id

    async def delete() -> None:
        other = own_cloud.other_process()
        await other.sessions.mark_deleted(*ids)
        assert await other.deletion.delete_session(*ids, time.monotonic() + 60)

    rule = DeletedBetween("TransactWriteItems", delete)
    with own_cloud.proxy._having(rule):
        await own_cloud.store.sessions.create(tenant, created.agent_id, begun, None)

    assert rule.retried
    with pytest.raises(NotFound):
        await own_cloud.store.sessions.get(*ids)
    assert not [item for item in own_cloud.items(tenant) if "#session" in item["pk"]["S"]]


async def test_a_session_that_exists_is_not_created_again(cloud: Cloud, tenant: str) -> None:
    fixture = await SessionFixture.create(cloud.store, tenant)
    lease = await fixture.acquire()
    begun = Session(session_id=fixture.session_id, session_name="other", started_at=now())

    with pytest.raises(ConditionFailed):
        await cloud.store.sessions.create(tenant, fixture.agent_id, begun, None)

    await lease.renew(30)


async def test_a_signal_that_arrives_before_a_move_is_not_lost(
    cloud: Cloud, old_session: SessionFixture, new_session: SessionFixture
) -> None:
    lapsed = await old_session.acquire(seconds=-0.001)
    entry, _ = await records_of(cloud, old_session)
    assert entry is not None
    run = TurnRef(old_session.agent_id, old_session.session_id, lapsed.turn_id)
    assert await old_session.store.run_signals.cancel_turn(old_session.tenant, run)

    assert await cloud.store.session_records.move(entry) is None
    await new_session.acquire(lapsed.turn_id, resume=True)

    _, signals = await new_session.store.run_signals.read(new_session.tenant, [run])
    assert signals == {run: RunSignals(cancelled=True)}


@pytest.mark.parametrize("layout", ["spread", "compatible"])
async def test_a_new_session_is_used_before_its_first_lease(cloud: Cloud, tenant: str, layout: keys.KeyLayout) -> None:
    fixture = await SessionFixture.create(cloud.store, tenant)
    store, owner = cloud.other_process(layout), hash_user("ann")

    assert (await store.session_leases.claim(*fixture.ids, owner)).owner == owner
    assert not await store.run_signals.cancel_turn(tenant, TurnRef(fixture.agent_id, fixture.session_id, new_id()))


@pytest.mark.parametrize("moved", [False, True])
@pytest.mark.parametrize("layout", ["spread", "compatible"])
async def test_a_session_of_either_layout_is_deleted_by_either(
    cloud: Cloud, old_session: SessionFixture, new_session: SessionFixture, moved: bool, layout: str
) -> None:
    await (new_session if moved else old_session).turn()
    deleting = new_session if layout == "spread" else old_session

    await deleting.store.sessions.mark_deleted(*deleting.ids)
    for fixture in (old_session, new_session):
        with pytest.raises(NotFound):
            await fixture.store.sessions.get(*fixture.ids)
        with pytest.raises(NotFound):
            await fixture.acquire()
    assert await deleting.store.deletion.delete_session(*deleting.ids, time.monotonic() + 60)

    assert await records_of(cloud, old_session) == (None, None)


async def test_a_deletion_marks_the_state_that_its_request_did_not_mark(
    cloud: Cloud, new_session: SessionFixture
) -> None:
    lease = await new_session.acquire()
    await cloud.table.update(keys.session(*new_session.ids), {"deleted_at": 1}, "attribute_exists(pk)")

    assert await cloud.store.deletion.delete_session(*new_session.ids, time.monotonic() + 60)

    with pytest.raises(Interrupted):
        await lease.renew(30)


async def test_a_marked_session_does_not_move(cloud: Cloud, old_session: SessionFixture) -> None:
    entry, _ = await records_of(cloud, old_session)
    assert entry is not None
    await old_session.store.sessions.mark_deleted(*old_session.ids)

    assert await cloud.store.session_records.move(entry) is None

    assert (await records_of(cloud, old_session))[1] is None


async def test_a_session_that_changes_while_it_moves_stays(cloud: Cloud, old_session: SessionFixture) -> None:
    entry, _ = await records_of(cloud, old_session)
    assert entry is not None
    lease = await old_session.acquire()

    assert await cloud.store.session_records.move(entry) is None

    await lease.renew(30)


async def test_lists_show_sessions_of_both_layouts(cloud: Cloud, old_session: SessionFixture) -> None:
    begun = session("new")
    await cloud.store.sessions.create(old_session.tenant, old_session.agent_id, begun, None)

    for layout in ("spread", "compatible"):
        store = cloud.other_process(layout)
        page = await store.sessions.list(old_session.tenant, old_session.agent_id, Window())
        assert [each.session_name for each in page.data] == ["talk", "new"]


class EarlierRelease:
    """The lease of the release before: conditional updates of the list entry, which it knows alone."""

    def __init__(self, table: Table, ids: tuple[str, str, str]) -> None:
        self._table, self._key = table, keys.session(*ids)

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[tuple[str, LastTurn | None]]:
        """Hold the session for a new turn, and yield its id and the last turn. Raises Conflict."""
        turn_id, lease_id = new_id(), new_id()
        lease = {"lease_id": lease_id, "lease_turn": turn_id, "lease_until": int(time.time() * 1000) + 30_000}
        condition = (
            f"{LIVE} AND attribute_not_exists(lease_id) AND attribute_exists(pk)"
            " AND (attribute_not_exists(last_turn) OR last_turn < :set_lease_turn)"
        )
        try:
            found = await self._table.update(self._key, lease, condition, {":now": int(time.time())})
        except ConditionFailed as refused:
            raise Conflict("The session is leased.") from refused
        yield turn_id, LastTurn(found["last_turn"], found["last_records"]) if "last_turn" in found else None
        released = dict.fromkeys(("lease_id", "lease_turn", "lease_until")) | {"last_turn": turn_id, "last_records": 1}
        await self._table.update(self._key, released, "lease_id = :held", {":held": lease_id})


class ThisRelease:
    """The lease of a process with a layout."""

    def __init__(self, fixture: SessionFixture) -> None:
        self._fixture = fixture

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[tuple[str, LastTurn | None]]:
        lease = await self._fixture.acquire()
        yield lease.turn_id, lease.last
        lease.last = LastTurn(lease.turn_id, 1)
        await lease.release()


@pytest.mark.parametrize("versions", [("earlier", "compatible"), ("compatible", "spread")], ids="-".join)
async def test_two_versions_run_one_turn_at_a_time_and_lose_none(
    cloud: Cloud, old_session: SessionFixture, versions: tuple[str, str]
) -> None:
    """Each turn sees the turn before it as the last one, whichever version has run it."""

    def process(version: str) -> EarlierRelease | ThisRelease:
        if version == "earlier":
            return EarlierRelease(cloud.table, old_session.ids)
        layout: keys.KeyLayout = "spread" if version == "spread" else "compatible"
        return ThisRelease(SessionFixture(cloud.other_process(layout), *old_session.ids))

    turns: list[tuple[str, str]] = []
    running = 0

    async def run(version: str, until: Callable[[], bool]) -> None:
        nonlocal running
        each = process(version)
        while not until():
            try:
                async with each.turn() as (turn_id, last):
                    running += 1
                    assert running == 1
                    assert (last.turn_id if last else None) == (turns[-1][1] if turns else None)
                    await asyncio.sleep(random.uniform(0, 0.005))
                    turns.append((version, turn_id))
                    running -= 1
            except Conflict:
                pass
            await asyncio.sleep(random.uniform(0, 0.01))

    def ran(version: str, count: int) -> bool:
        return sum(each == version for each, _ in turns) >= count

    older, newer = versions
    # The newer version comes while the older one runs. A moved session is served by both.
    await asyncio.gather(
        *(run(older, lambda: ran(newer, 10) and ran(older, 10)) for _ in range(3)),
        *(run(newer, lambda: ran(newer, 10) and ran(older, 10)) for _ in range(3)),
    )

    assert len({turn_id for _, turn_id in turns}) == len(turns)
