import asyncio
import logging
import threading
from contextlib import aclosing

import pytest
from tests.script_model import called, said, script, shape
from tests.services.conftest import MakeTurnFixture
from tests.services.turn_fixture import TurnFixture, die, ended, expire_lease_of
from tests.store.conftest import Cloud

from stint.domain.errors import Conflict
from stint.domain.inference import AssistantAnswer, UserInput
from stint.domain.llama_stack.stored_turns import TurnRecord
from stint.domain.llama_stack.turns import TurnStatus
from stint.loop.answer import Answer
from stint.services.turns.turn_run import TurnRun


async def test_a_second_turn_at_once_is_refused_and_told_which_one_runs(make_turn_fixture: MakeTurnFixture) -> None:
    gate = asyncio.Event()
    turn_fixture = await make_turn_fixture(script([gate, *said()])).open()
    turn = await turn_fixture.start()

    with pytest.raises(Conflict, match=turn.turn_id) as caught:
        await turn_fixture.start()

    assert caught.value.code == "session_locked"
    gate.set()
    assert ended(await turn_fixture.play(turn)).status is TurnStatus.completed


async def test_of_many_turns_at_once_one_begins(make_turn_fixture: MakeTurnFixture) -> None:
    turn_fixture = await make_turn_fixture(script(*[said()] * 4)).open()

    outcomes = await asyncio.gather(*(turn_fixture.start() for _ in range(4)), return_exceptions=True)

    begun = [each for each in outcomes if isinstance(each, TurnRun)]
    assert [type(each) for each in outcomes if each not in begun] == [Conflict] * 3
    await turn_fixture.play(begun[0])
    assert len(await turn_fixture.stored()) == 1


async def after_first_step(turn_fixture: TurnFixture) -> TurnRun:
    """Begin a turn whose process dies behind its first stored step."""
    turn = await turn_fixture.start("one")
    async with aclosing(turn_fixture.turns.run(turn)) as events:
        async for event in events:
            if shape([event]) == ["complete inference"]:
                break
    await die(turn)
    return turn


async def test_the_turn_of_a_dead_process_is_sealed_and_stays_in_the_history(
    make_turn_fixture: MakeTurnFixture,
) -> None:
    dead = await make_turn_fixture(script(called("nosuch", text="So"))).open()
    turn = await after_first_step(dead)
    model = script(said())

    await dead.other_process(model).turn("two")

    sealed, following = await dead.stored()
    assert sealed.error is not None
    assert (sealed.turn_id, sealed.status, sealed.error.code) == (turn.turn_id, TurnStatus.failed, "interrupted")
    assert len(sealed.steps) == 1
    assert following.status is TurnStatus.completed
    first, answer, _, second = model.requests[0].messages
    assert (first, second) == (UserInput("one"), UserInput("two"))
    assert isinstance(answer, AssistantAnswer)
    assert answer.text == "So"


async def test_what_a_dead_process_stored_until_its_turn_was_sealed_is_seen(
    make_turn_fixture: MakeTurnFixture, own_cloud: Cloud, tenant: str
) -> None:
    model = script(said("two"))
    turn_fixture = await TurnFixture(own_cloud.store, tenant, model).open()
    dead = make_turn_fixture(script([asyncio.Event()]))
    dead.agent_id, dead.session_id = turn_fixture.agent_id, turn_fixture.session_id
    turn = await dead.start("one")
    await die(turn)
    await turn.log.keeper.lease.release()
    late = Answer(run_id=turn.turn_id, text=["late"]).to_step()
    loop = asyncio.get_running_loop()

    def see(operation: str, body: str) -> None:
        if operation == "Query" and "begins_with" in body and not turn.log.turn.records:
            turn.log.turn.records.append(TurnRecord(step=late))
            appending = dead.store.turns.append(turn.log.keeper.lease, 0, TurnRecord(step=late))
            asyncio.run_coroutine_threadsafe(appending, loop).result()

    with own_cloud.proxy.watching(see):
        await turn_fixture.turn("two")

    assert model.requests[0].messages == (UserInput("one"), AssistantAnswer("late"), UserInput("two"))
    assert [each.status.value for each in await turn_fixture.stored()] == ["failed", "completed"]


@pytest.mark.parametrize("frozen", [False, True], ids=["that knows", "whose clock stood still"])
async def test_a_writer_that_comes_back_after_a_takeover_is_refused(
    make_turn_fixture: MakeTurnFixture, cloud: Cloud, frozen: bool
) -> None:
    gate = asyncio.Event()
    late = await make_turn_fixture(script([gate, *said("late")])).open()
    turn = await late.start()
    await expire_lease_of(turn)
    await late.other_process(script(said())).turn("two")
    turn.log.keeper.valid_until -= 0 if frozen else 1000
    before = cloud.items(late.tenant)

    gate.set()
    told = ended(await late.play(turn))

    assert told.error is not None
    assert told.error.code == "interrupted"
    assert cloud.items(late.tenant) == before


async def test_a_takeover_may_be_taken_over(make_turn_fixture: MakeTurnFixture) -> None:
    first = await make_turn_fixture(script([asyncio.Event()])).open()
    second, third = first.other_process(script([asyncio.Event()])), first.other_process(script(said()))

    for turn_fixture, text in ((first, "one"), (second, "two")):
        await die(await turn_fixture.start(text))
    await third.turn("three")

    assert [turn.status.value for turn in await first.stored()] == ["failed", "failed", "completed"]


async def test_a_pause_that_was_stored_survives_a_death_before_the_release(make_turn_fixture: MakeTurnFixture) -> None:
    turn_fixture = await make_turn_fixture(script(called("add"), said())).open("add")
    paused = await turn_fixture.turn()
    await turn_fixture.store.session_leases.acquire(*turn_fixture.ids, paused.turn_id, resume=True, seconds=0.05)
    await turn_fixture.expire_lease()

    done = await turn_fixture.resumed(paused.turn_id, ("c0", "3"))

    assert done.status is TurnStatus.completed


async def test_a_history_that_was_read_before_another_turn_ended_is_read_again(
    make_turn_fixture: MakeTurnFixture, own_cloud: Cloud, tenant: str
) -> None:
    model = script(said())
    slow = await TurnFixture(own_cloud.store, tenant, model).open()
    fast = make_turn_fixture(script(said("between")))
    fast.agent_id, fast.session_id = slow.agent_id, slow.session_id
    read, go_on = threading.Event(), threading.Event()

    def see(operation: str, body: str) -> None:
        if operation == "UpdateItem" and not go_on.is_set():
            read.set()
            assert go_on.wait(10)

    await slow.agents.config(slow.agent_id)
    with own_cloud.proxy.watching(see):
        starting = asyncio.create_task(slow.start("two"))
        await asyncio.to_thread(read.wait, 10)
        await fast.turn("one")
        go_on.set()
        turn = await starting

    await slow.play(turn)
    assert [getattr(each, "content", None) for each in model.requests[0].messages] == ["one", None, "two"]


async def test_older_turns_are_left_out_at_a_turns_boundary_with_a_log_line(
    make_turn_fixture: MakeTurnFixture, caplog: pytest.LogCaptureFixture
) -> None:
    model = script(said("a"), said("b"), said("c"), said("d"))
    turn_fixture = await make_turn_fixture(model, history=3800).open()
    texts = [letter * 1000 for letter in "xyz"]
    for text in texts:
        await turn_fixture.turn(text)
    assert "STINT_HISTORY_BYTES" not in caplog.text

    with caplog.at_level(logging.WARNING, "stint"):
        await turn_fixture.turn("now")

    said_before = [each.content for each in model.requests[3].messages if isinstance(each, UserInput)]
    assert said_before == [*texts[1:], "now"]
    assert "STINT_HISTORY_BYTES" in caplog.text


async def test_a_turn_that_is_too_large_to_be_seen_is_still_resumed_and_cancelled(
    make_turn_fixture: MakeTurnFixture,
) -> None:
    model = script(called("add"), called("add"), said())
    turn_fixture = await make_turn_fixture(model, history=100).open("add")
    text = "x" * 1000

    paused = await turn_fixture.turn(text)
    again = await turn_fixture.resumed(paused.turn_id, ("c0", "3"))
    await turn_fixture.turn("two")

    assert again.status is TurnStatus.awaiting_input
    assert model.requests[1].messages[0] == UserInput(text)
    assert model.requests[2].messages == (UserInput("two"),)
    assert [turn.status for turn in await turn_fixture.stored()] == [TurnStatus.cancelled, TurnStatus.completed]
