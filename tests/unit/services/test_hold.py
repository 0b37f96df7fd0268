import asyncio
import time

import pytest
from tests.unit.services.conftest import MakeStage
from tests.unit.services.faults import failing
from tests.unit.services.stage import Stage, die, ended, run_out, said, script, shape, until
from tests.unit.store.conftest import Cloud

from stint.domain.errors import Conflict
from stint.domain.inference import TextChunk
from stint.domain.turns import TurnStatus
from stint.services.hold import ENDING_SECONDS


def lease_end(stage: Stage) -> int:
    return stage.store.sessions.get(*stage.ids).lease_until or 0


async def test_a_turn_that_outlasts_its_lease_keeps_the_session(make_stage: MakeStage) -> None:
    gate = asyncio.Event()
    stage = await make_stage(script([TextChunk("a"), gate, *said("b")]), lease=1.5).open()
    turn = await stage.start()
    begun = lease_end(stage)

    await until(lambda: lease_end(stage) > begun + 900)
    with pytest.raises(Conflict):
        await stage.start()
    gate.set()

    assert ended(await stage.play(turn)).status is TurnStatus.completed


async def test_a_renewal_that_fails_is_tried_again(own_cloud: Cloud, tenant: str) -> None:
    stage = await Stage(own_cloud.store, tenant, script([asyncio.Event()]), lease=1.5).open()
    turn = await stage.start()
    begun = lease_end(stage)

    with failing(own_cloud, "UpdateItem", times=1):
        await until(lambda: lease_end(stage) > begun)

    turn.log.hold.check()
    await die(turn)


async def test_a_turn_whose_renewals_fail_stops_writing(own_cloud: Cloud, tenant: str) -> None:
    gate = asyncio.Event()
    stage = await Stage(own_cloud.store, tenant, script([gate, *said()]), lease=1).open()
    turn = await stage.start()
    before = own_cloud.items(tenant)

    with failing(own_cloud, "UpdateItem"):
        await until(lambda: asyncio.get_running_loop().time() > turn.log.hold.valid_until)
        gate.set()
        events = await stage.play(turn)

    assert shape(events)[-1] == "failed interrupted"
    assert own_cloud.items(tenant) == before


async def test_a_session_that_was_taken_over_is_noticed_by_the_next_renewal(make_stage: MakeStage) -> None:
    stage = await make_stage(script([asyncio.Event()]), lease=1).open()
    turn = await stage.start()
    await asyncio.to_thread(stage.store.leases.release, turn.log.hold.lease, None)

    await until(turn.log.hold.renewal.done)

    assert turn.log.hold.valid_until <= asyncio.get_running_loop().time()
    await turn.run.close_inference()


async def test_a_lease_never_outlives_the_function(make_stage: MakeStage) -> None:
    stage = await make_stage(script([asyncio.Event()]), lease=30).open()
    last = time.time() + 0.3 + ENDING_SECONDS

    turn = await stage.start(seconds=0.3)

    assert lease_end(stage) / 1000 <= last + 0.1
    assert shape(await stage.play(turn))[-1] == "failed deadline_exceeded"
    assert turn.log.hold.renewal.done()


async def test_a_release_that_fails_does_not_spoil_the_turn(own_cloud: Cloud, tenant: str) -> None:
    stage = await Stage(own_cloud.store, tenant, script(said(), said())).open()
    turn = await stage.start()

    with failing(own_cloud, "UpdateItem", "REMOVE"):
        done = ended(await stage.play(turn))
    await run_out(turn)
    await stage.turn("two")

    assert done.status is TurnStatus.completed
    assert [each.status for each in await stage.stored()] == [TurnStatus.completed] * 2
