import asyncio
import threading
from typing import Any

from tests.services.conftest import MakeTurnFixture
from tests.services.faults import held_together, watching
from tests.services.turn_fixture import TurnFixture, called, said, script
from tests.store.conftest import Cloud


def write_units(cloud: Cloud) -> float:
    return cloud.units["PutItem"] + cloud.units["UpdateItem"] + cloud.units["DeleteItem"]


async def test_a_simple_warm_turn_costs_four_write_units_and_one_query(
    make_stage: MakeTurnFixture, cloud: Cloud
) -> None:
    stage = await make_stage(script(said(), said())).open()
    await stage.turn()
    cloud.forget()

    await stage.turn()

    assert cloud.calls == {"UpdateItem": 2, "PutItem": 2, "Query": 1, "GetItem": 1}
    assert write_units(cloud) == 4


async def test_a_turn_with_one_client_call_costs_ten_write_units_five_before_the_pause(
    make_stage: MakeTurnFixture, cloud: Cloud
) -> None:
    stage = await make_stage(script(said(), called("add"), said())).open("add")
    await stage.turn()
    cloud.forget()

    turn = await stage.turn()
    before = write_units(cloud)
    await stage.resumed(turn.turn_id, ("c0", "3"))

    assert (before, write_units(cloud)) == (5, 10)
    assert cloud.calls["Query"] == 2


async def test_the_model_is_called_after_one_storage_round_trip_and_before_the_header_is_stored(
    own_cloud: Cloud, tenant: str
) -> None:
    model = script(said(), said())
    stage = await TurnFixture(own_cloud.store, tenant, model).open()
    await stage.turn()
    model.opened.clear()
    opened, seen_at_opening = threading.Event(), []

    def hold_header(operation: str, body: str, context: dict[str, Any]) -> None:
        assert operation != "PutItem" or opened.wait(10)

    with held_together(own_cloud, "UpdateItem", "GetItem", "Query") as seen, watching(own_cloud, hold_header):
        starting = asyncio.create_task(stage.start())
        await asyncio.wait_for(model.opened.wait(), 30)
        seen_at_opening = [name for name in seen.elements() if name != "PutItem"]
        opened.set()
        turn = await starting

    assert sorted(seen_at_opening) == ["GetItem", "Query", "UpdateItem"]
    await stage.play(turn)


async def test_a_resumed_turn_reads_all_in_one_storage_round_trip(own_cloud: Cloud, tenant: str) -> None:
    stage = await TurnFixture(own_cloud.store, tenant, script(called("add"), said())).open("add")
    paused = await stage.turn()

    with held_together(own_cloud, "UpdateItem", "GetItem", "GetItem", "Query") as seen:
        turn = await stage.resume(paused.turn_id, ("c0", "3"))

    assert seen == {"UpdateItem": 1, "GetItem": 2, "Query": 1, "PutItem": 1, "DeleteItem": 1}
    await stage.play(turn)
