"""The terminal event says what is stored, although the answers to the last write were lost."""

import asyncio
from contextlib import ExitStack

import pytest
from tests.script_model import called, said, script, shape
from tests.services.turn_fixture import TurnFixture, die, ended
from tests.store.conftest import Cloud

from stint.domain.errors import StoreUnavailable
from stint.domain.llama_stack.turns import TurnStatus
from stint.store import documents

ENDING, ANSWERS = "ended_as", "tool_responses"


async def open_fixture(cloud: Cloud, tenant: str, *tools: str) -> TurnFixture:
    model = script(called("look") if tools else said(), said("next"), said("again"))
    return await TurnFixture(cloud.store, tenant, model).open(*tools)


@pytest.mark.parametrize("tools", [(), ("look",)])
@pytest.mark.parametrize("unreadable", [0, 1])
async def test_an_ending_whose_answers_were_lost_is_announced_as_it_is_stored(
    own_cloud: Cloud, tenant: str, tools: tuple[str, ...], unreadable: int
) -> None:
    turn_fixture = await open_fixture(own_cloud, tenant, *tools)
    turn = await turn_fixture.start()

    with ExitStack() as faults:
        faults.enter_context(own_cloud.proxy.failing("PutItem", ENDING, lost=True, times=1))
        faults.enter_context(own_cloud.proxy.failing("GetItem", times=unreadable))
        told = ended(await turn_fixture.play(turn))

    assert told.status is (TurnStatus.awaiting_input if tools else TurnStatus.completed)
    assert told == await turn_fixture.get(told.turn_id)
    assert turn.error is None
    assert await turn_fixture.lease_turn() is None
    assert (await turn_fixture.turn("two")).status is TurnStatus.completed


async def test_an_ending_that_did_not_take_effect_is_not_announced(own_cloud: Cloud, tenant: str) -> None:
    turn_fixture = await open_fixture(own_cloud, tenant)
    turn = await turn_fixture.start()

    with own_cloud.proxy.failing("PutItem", ENDING, times=1):
        events = await turn_fixture.play(turn)

    assert shape(events)[-1] == "failed store_unavailable"
    assert ended(events) == await turn_fixture.get(turn.turn_id)


async def test_an_ending_that_cannot_be_read_in_time_fails_the_turn(
    own_cloud: Cloud, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn_fixture = await open_fixture(own_cloud, tenant)
    turn = await turn_fixture.start()
    monkeypatch.setattr(documents, "CHECK_SECONDS", 0)

    with (
        own_cloud.proxy.failing("PutItem", ENDING, lost=True),
        own_cloud.proxy.failing("Query"),
    ):
        events = await turn_fixture.play(turn)

    assert shape(events)[-1] == "failed store_unavailable"
    assert (await turn_fixture.get(turn.turn_id)).status is TurnStatus.completed


async def test_a_step_whose_answers_were_lost_does_not_fail_its_turn(own_cloud: Cloud, tenant: str) -> None:
    model = script(called("nosuch"), said())
    turn_fixture = await TurnFixture(own_cloud.store, tenant, model).open()
    turn = await turn_fixture.start()

    with own_cloud.proxy.failing("PutItem", ANSWERS, lost=True, times=1):
        told = ended(await turn_fixture.play(turn))

    assert (told.status, len(told.steps)) == (TurnStatus.completed, 3)
    assert told == await turn_fixture.get(told.turn_id)


async def test_a_failure_is_stored_after_a_step_that_was_stored_unknowingly(own_cloud: Cloud, tenant: str) -> None:
    turn_fixture = await TurnFixture(own_cloud.store, tenant, script(called("nosuch"), said())).open()
    turn = await turn_fixture.start()

    with (
        own_cloud.proxy.failing("PutItem", ANSWERS, lost=True, times=1),
        own_cloud.proxy.failing("GetItem", times=1),
    ):
        told = ended(await turn_fixture.play(turn))

    assert (told.status, len(told.steps)) == (TurnStatus.failed, 2)
    assert told == await turn_fixture.get(told.turn_id)
    assert await turn_fixture.lease_turn() is None


@pytest.mark.parametrize("lost", [False, True])
@pytest.mark.parametrize("warm", [False, True])
async def test_a_resume_whose_answers_were_lost_can_be_repeated(
    own_cloud: Cloud, tenant: str, lost: bool, warm: bool
) -> None:
    turn_fixture = await open_fixture(own_cloud, tenant, "look")
    turn_id = (await turn_fixture.turn()).turn_id

    with (
        own_cloud.proxy.failing("PutItem", ANSWERS, lost=lost, times=1),
        own_cloud.proxy.failing("GetItem", f"{turn_id}:0001"),
        pytest.raises(StoreUnavailable),
    ):
        await turn_fixture.resume(turn_id, ("c0", "a lamp"))
    other = turn_fixture if warm else turn_fixture.other_process(script(said("again")))
    told = await other.resumed(turn_id, ("c0", "a lamp"))

    assert (told.status, [step.step_type for step in told.steps]) == (
        TurnStatus.completed,
        ["inference", "tool_execution", "inference"],
    )
    assert told == await turn_fixture.get(turn_id)


async def test_a_resume_whose_process_died_at_once_can_be_repeated(own_cloud: Cloud, tenant: str) -> None:
    turn_fixture = await open_fixture(own_cloud, tenant, "look")
    turn_id = (await turn_fixture.turn()).turn_id
    await die(await turn_fixture.resume(turn_id, ("c0", "a lamp")))

    told = await turn_fixture.other_process(script(said("again"))).resumed(turn_id, ("c0", "a lamp"))

    assert told.status is TurnStatus.completed
    assert told == await turn_fixture.get(turn_id)


async def test_a_repeated_resume_ends_the_writes_of_a_process_that_lives(own_cloud: Cloud, tenant: str) -> None:
    gate = asyncio.Event()
    first = await TurnFixture(own_cloud.store, tenant, script(called("look"), [gate, *said("late")])).open("look")
    turn_id = (await first.turn()).turn_id
    turn = await first.resume(turn_id, ("c0", "a lamp"))
    await turn.log.keeper.lease.renew(-1)

    told = await first.other_process(script(said("again"))).resumed(turn_id, ("c0", "a lamp"))
    gate.set()
    late = shape(await first.play(turn))

    assert late[-1] != "turn_awaiting_input"
    assert told == await first.get(turn_id)
