import asyncio
import threading

from tests.script_model import called, said, script
from tests.services.conftest import MakeTurnFixture
from tests.services.turn_fixture import TurnFixture
from tests.store.conftest import Cloud


def write_units(cloud: Cloud) -> float:
    return cloud.units["PutItem"] + cloud.units["UpdateItem"] + cloud.units["DeleteItem"]


async def test_a_simple_warm_turn_costs_four_write_units_and_one_and_a_half_read_units(
    make_turn_fixture: MakeTurnFixture, cloud: Cloud
) -> None:
    turn_fixture = await make_turn_fixture(script(said(), said())).open()
    await turn_fixture.turn()
    cloud.forget()

    await turn_fixture.turn()

    assert cloud.calls == {"UpdateItem": 2, "PutItem": 2, "GetItem": 2}
    assert cloud.units["GetItem"] == 1.5
    assert write_units(cloud) == 4


async def test_a_turn_with_one_client_call_costs_ten_write_units_five_before_the_pause(
    make_turn_fixture: MakeTurnFixture, cloud: Cloud
) -> None:
    turn_fixture = await make_turn_fixture(script(said(), called("add"), said())).open("add")
    await turn_fixture.turn()
    cloud.forget()

    turn = await turn_fixture.turn()
    before = write_units(cloud)
    await turn_fixture.resumed(turn.turn_id, ("c0", "3"))

    assert (before, write_units(cloud)) == (5, 10)
    assert cloud.calls["Query"] == 0


async def test_the_model_is_called_after_one_storage_round_trip_and_before_the_header_is_stored(
    own_cloud: Cloud, tenant: str
) -> None:
    model = script(said())
    turn_fixture = (await TurnFixture(own_cloud.store, tenant, model).open()).other_process(model)
    await turn_fixture.agents.config(turn_fixture.agent_id)
    await turn_fixture.turns.planner.prepare()
    opened, seen_at_opening = threading.Event(), []

    def hold_header(operation: str, body: str) -> None:
        assert operation != "PutItem" or opened.wait(10)

    # BatchGetItem: the stops, which this process has not read before.
    opening = own_cloud.proxy.held_together("UpdateItem", "GetItem", "BatchGetItem", "Query")
    with opening as seen, own_cloud.proxy.watching(hold_header):
        starting = asyncio.create_task(turn_fixture.start())
        await asyncio.wait_for(model.opened.wait(), 30)
        seen_at_opening = [name for name in seen.elements() if name != "PutItem"]
        opened.set()
        turn = await starting

    assert sorted(seen_at_opening) == ["BatchGetItem", "GetItem", "Query", "UpdateItem"]
    await turn_fixture.play(turn)


async def test_a_resumed_turn_reads_all_in_one_storage_round_trip(own_cloud: Cloud, tenant: str) -> None:
    first = await TurnFixture(own_cloud.store, tenant, script(called("add"))).open("add")
    paused = await first.turn()
    turn_fixture = first.other_process(script(said()))
    await turn_fixture.agents.config(turn_fixture.agent_id)
    await turn_fixture.turns.planner.prepare()

    with own_cloud.proxy.held_together("UpdateItem", "GetItem", "GetItem", "GetItem", "Query") as seen:
        turn = await turn_fixture.resume(paused.turn_id, ("c0", "3"))

    assert seen == {"UpdateItem": 1, "GetItem": 3, "Query": 1, "PutItem": 1, "DeleteItem": 1}
    await turn_fixture.play(turn)
