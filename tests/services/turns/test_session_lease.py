import asyncio
import time

import pytest
from tests.clock import CLOCK
from tests.script_model import called, said, script, shape, until
from tests.services.conftest import MakeTurnFixture
from tests.services.turn_fixture import TurnFixture, die, ended, expire_lease_of
from tests.store.conftest import Cloud

from stint.domain.errors import Conflict, Interrupted
from stint.domain.inference import TextChunk
from stint.domain.llama_stack.turns import TurnStatus
from stint.loop.lease_keeper import ENDING_SECONDS
from stint.services.turns.turn_run import TurnRun

LEASE = 30.0


async def renewed(turn: TurnRun) -> None:
    """Let the time of the next renewal come, and wait until it is done."""
    keeper = turn.log.keeper
    begun = keeper.valid_until
    CLOCK.move(LEASE / 3)
    await until(lambda: keeper.valid_until > begun)


async def lease_end(turn_fixture: TurnFixture) -> int:
    return (await turn_fixture.store.sessions.get(*turn_fixture.ids)).lease_until or 0


async def test_a_turn_that_outlasts_its_lease_keeps_the_session(make_turn_fixture: MakeTurnFixture) -> None:
    gate = asyncio.Event()
    turn_fixture = await make_turn_fixture(script([TextChunk("a"), gate, *said("b")]), lease=LEASE).open()
    turn = await turn_fixture.start(seconds=10 * LEASE)

    for _ in range(4):
        await renewed(turn)
    with pytest.raises(Conflict):
        await turn_fixture.start()
    gate.set()

    assert ended(await turn_fixture.play(turn)).status is TurnStatus.completed


async def test_a_renewal_that_fails_is_tried_again(
    own_cloud: Cloud, tenant: str, caplog: pytest.LogCaptureFixture
) -> None:
    turn_fixture = await TurnFixture(own_cloud.store, tenant, script([asyncio.Event()]), lease=LEASE).open()
    turn = await turn_fixture.start(seconds=10 * LEASE)
    begun = await lease_end(turn_fixture)

    with own_cloud.proxy.failing("UpdateItem", times=1):
        CLOCK.move(LEASE / 3)
        await until(lambda: "trying again" in caplog.text)
    await renewed(turn)

    assert await lease_end(turn_fixture) > begun
    turn.log.keeper.check()
    await die(turn)


async def test_a_turn_whose_renewals_fail_stops_writing(own_cloud: Cloud, tenant: str) -> None:
    gate = asyncio.Event()
    turn_fixture = await TurnFixture(own_cloud.store, tenant, script([gate, *said()]), lease=LEASE).open()
    turn = await turn_fixture.start(seconds=10 * LEASE)
    before = own_cloud.items(tenant)

    with own_cloud.proxy.failing("UpdateItem"):
        CLOCK.move(LEASE)
        gate.set()
        events = await turn_fixture.play(turn)

    assert shape(events)[-1] == "failed interrupted"
    listed = [item for item in own_cloud.items(tenant) if "#running." in item["pk"]["S"]]  # it has run for 10 s
    assert [item for item in own_cloud.items(tenant) if item not in listed] == before


async def test_a_session_that_was_taken_over_is_noticed_by_the_next_renewal(make_turn_fixture: MakeTurnFixture) -> None:
    turn_fixture = await make_turn_fixture(script([asyncio.Event()]), lease=LEASE).open()
    turn = await turn_fixture.start(seconds=10 * LEASE)
    await turn.log.keeper.lease.release()

    CLOCK.move(LEASE / 3)
    await until(lambda: turn.log.keeper.renewal and turn.log.keeper.renewal.done())

    with pytest.raises(Interrupted):
        turn.log.keeper.check()
    await turn.run.close_inference()


async def test_a_lease_never_outlives_the_function(make_turn_fixture: MakeTurnFixture) -> None:
    turn_fixture = await make_turn_fixture(script([asyncio.Event()]), lease=10 * LEASE).open()

    turn = await turn_fixture.start(seconds=LEASE)

    assert await lease_end(turn_fixture) / 1000 <= time.time() + LEASE + ENDING_SECONDS
    CLOCK.move(LEASE)
    assert shape(await turn_fixture.play(turn))[-1] == "failed deadline_exceeded"
    assert turn.log.keeper.timer.cancelled()
    assert turn.log.keeper.renewal is None


async def test_a_release_that_fails_does_not_spoil_the_turn(own_cloud: Cloud, tenant: str) -> None:
    turn_fixture = await TurnFixture(own_cloud.store, tenant, script(said(), said())).open()
    turn = await turn_fixture.start()

    with own_cloud.proxy.failing("UpdateItem", "REMOVE"):
        done = ended(await turn_fixture.play(turn))
    await expire_lease_of(turn)
    await turn_fixture.turn("two")

    assert done.status is TurnStatus.completed
    assert [each.status for each in await turn_fixture.stored()] == [TurnStatus.completed] * 2


@pytest.mark.parametrize("resumed", [False, True])
async def test_a_turn_that_ended_without_a_release_leaves_its_session_free(
    own_cloud: Cloud, tenant: str, resumed: bool
) -> None:
    model = script(called("look"), said("found"), said("next"))
    turn_fixture = await TurnFixture(own_cloud.store, tenant, model, lease=LEASE).open("look")
    turn = await turn_fixture.start("one")
    if resumed:
        turn_id = ended(await turn_fixture.play(turn)).turn_id
        turn = await turn_fixture.resume(turn_id, ("c0", "here"))

    with own_cloud.proxy.failing("UpdateItem", "last_records"):
        first = ended(await turn_fixture.play(turn))
    assert await turn_fixture.lease_turn() == first.turn_id

    following = await turn_fixture.resumed(first.turn_id, ("c0", "here")) if not resumed else None
    last = await turn_fixture.other_process(script(said("next"))).turn("two")

    assert following is None or following.status is TurnStatus.completed
    assert last.status is TurnStatus.completed
    assert [each.status.value for each in await turn_fixture.stored()] == ["completed", "completed"]
