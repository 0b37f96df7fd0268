import asyncio
from typing import Any

import pytest
from tests.script_model import called, deadline, said, script, shape
from tests.services.conftest import MakeTurnFixture
from tests.services.turn_fixture import TurnFixture, die, ended, expire_lease_of
from tests.store.conftest import Cloud

from stint.domain.errors import Conflict, InvalidRequest, ModelError, NotFound, StoreUnavailable
from stint.domain.ids import new_id
from stint.domain.inference import Finished, FinishReason, ToolCallChunk, ToolResult, Usage
from stint.domain.llama_stack.turns import TurnResumeRequest, TurnStatus
from stint.domain.steps import ToolExecutionStep
from stint.services.runs.run_handle import RequestContext


async def pending_of(turn_fixture: TurnFixture, turn_id: str) -> Any:
    return await turn_fixture.store.turns.get_pending(*turn_fixture.ids, turn_id)


async def test_a_resumed_turn_goes_on_where_it_paused(make_turn_fixture: MakeTurnFixture) -> None:
    model = script(called("add", "sub", text="So"), said("3 and 1"))
    turn_fixture = await make_turn_fixture(model).open("add", "sub")
    paused = await turn_fixture.turn()
    pending = await pending_of(turn_fixture, paused.turn_id)

    turn = await turn_fixture.resume(paused.turn_id, ("c1", "1"), ("c0", "3"))
    pending_after = await pending_of(turn_fixture, paused.turn_id)
    events = await turn_fixture.play(turn)

    assert shape(events) == [
        "complete tool_execution",
        "start inference",
        "text 3 and 1",
        "complete inference",
        "turn_complete",
    ]
    done = ended(events)
    assert done == await turn_fixture.get(paused.turn_id)
    assert (done.turn_id, done.input_messages, done.steps[0]) == (
        paused.turn_id,
        paused.input_messages,
        paused.steps[0],
    )
    step = done.steps[1]
    assert isinstance(step, ToolExecutionStep)
    assert [each.call_id for each in step.tool_responses] == ["c0", "c1"]
    assert step.started_at == paused.completed_at
    assert (step.step_id, pending_after) == (pending.step_id, None)
    assert len({each.step_id for each in done.steps}) == 3
    assert [each.call_id for each in model.requests[1].messages if isinstance(each, ToolResult)] == ["c0", "c1"]


async def test_what_a_paused_turn_shows_asks_its_client_to_resume(make_turn_fixture: MakeTurnFixture) -> None:
    turn_fixture = await make_turn_fixture(script(called("add", "nosuch", text="So"))).open("add")

    turn = await turn_fixture.turn()

    assert turn == await turn_fixture.get(turn.turn_id)
    assert turn.status is TurnStatus.awaiting_input
    assert (turn.output_message.content, turn.output_message.stop_reason) == ("So", "end_of_message")
    assert [call.call_id for call in turn.output_message.tool_calls] == ["c0"]


async def test_the_waiting_calls_are_noted_before_the_pause_is_visible(own_cloud: Cloud, tenant: str) -> None:
    turn_fixture = await TurnFixture(own_cloud.store, tenant, script(called("add"))).open("add")
    writes: list[str] = []

    def see(operation: str, body: str) -> None:
        if operation == "PutItem":
            writes.append("note" if "in_progress_tool_call_step" in body else "pause" if "ended_as" in body else "")

    with own_cloud.proxy.watching(see):
        await turn_fixture.turn()

    assert writes == ["", "note", "pause"]


@pytest.mark.parametrize(
    ("given", "ids"),
    [(["c0"], "c1"), (["c0", "c1", "x"], "x"), (["c0", "c1", "c0"], "c0"), ([], "c0, c1")],
    ids=["missing", "unknown", "twice", "none"],
)
async def test_a_resume_with_wrong_call_ids_changes_nothing(
    make_turn_fixture: MakeTurnFixture, cloud: Cloud, given: list[str], ids: str
) -> None:
    turn_fixture = await make_turn_fixture(script(called("add", "sub"))).open("add", "sub")
    paused = await turn_fixture.turn()
    before = cloud.items(turn_fixture.tenant)

    with pytest.raises(InvalidRequest, match=ids) as caught:
        await turn_fixture.resume(paused.turn_id, *((call_id, "3") for call_id in given))

    assert caught.value.code == "tool_responses_mismatch"
    assert cloud.items(turn_fixture.tenant) == before


async def test_failed_cancelled_and_earlier_turns_cannot_be_resumed(
    make_turn_fixture: MakeTurnFixture, cloud: Cloud
) -> None:
    model = script(said(), [ModelError("no")], called("add"), said())
    turn_fixture = await make_turn_fixture(model).open("add")
    for text in ("completed", "failed", "cancelled", "completed"):
        turn = await turn_fixture.turn(text)
        before = cloud.items(turn_fixture.tenant)
        if turn.status is TurnStatus.failed:
            with pytest.raises(Conflict, match=f"{turn.turn_id}.*status is {text}"):
                await turn_fixture.resume(turn.turn_id, ("c0", "3"))
        assert cloud.items(turn_fixture.tenant) == before

    for turn in (await turn_fixture.stored())[:-1]:
        with pytest.raises(Conflict, match=f"{turn.turn_id}.*status is {turn.status.value}") as caught:
            await turn_fixture.resume(turn.turn_id, ("c0", "3"))
        assert caught.value.code == "turn_not_awaiting_input"
    assert await turn_fixture.lease_turn() is None


async def test_a_running_turn_cannot_be_resumed(make_turn_fixture: MakeTurnFixture) -> None:
    turn_fixture = await make_turn_fixture(script([asyncio.Event()])).open()
    turn = await turn_fixture.start()

    with pytest.raises(Conflict, match=turn.turn_id) as caught:
        await turn_fixture.resume(turn.turn_id, ("c0", "3"))

    assert caught.value.code == "session_locked"
    await die(turn)


async def test_unknown_turns_are_not_found(make_turn_fixture: MakeTurnFixture) -> None:
    turn_fixture = await make_turn_fixture(script(called("add"))).open("add")
    for unknown in (new_id(), "x"):
        with pytest.raises(NotFound):
            await turn_fixture.resume(unknown, ("c0", "3"))
    paused = await turn_fixture.turn()
    for unknown in (new_id(), "x"):
        with pytest.raises(NotFound) as caught:
            await turn_fixture.resume(unknown, ("c0", "3"))
        assert caught.value.code == "turn_not_found"

    assert (await turn_fixture.get(paused.turn_id)).status is TurnStatus.awaiting_input


async def test_of_many_resumes_at_once_one_wins(make_turn_fixture: MakeTurnFixture) -> None:
    turn_fixture = await make_turn_fixture(script(called("add"), said(), said(), said())).open("add")
    paused = await turn_fixture.turn()

    outcomes = await asyncio.gather(
        *(turn_fixture.resumed(paused.turn_id, ("c0", str(n))) for n in range(3)), return_exceptions=True
    )

    losers = [each for each in outcomes if isinstance(each, BaseException)]
    assert [type(each) for each in losers] == [Conflict, Conflict]
    assert len((await turn_fixture.get(paused.turn_id)).steps) == 3


async def test_another_process_resumes_with_the_turns_own_overrides(make_turn_fixture: MakeTurnFixture) -> None:
    turn_fixture = await make_turn_fixture(script(called("add"))).open("add")
    paused = await turn_fixture.turn(instructions="Sing.", sampling_params={"max_tokens": 7})
    model = script(said())

    await turn_fixture.other_process(model).resumed(paused.turn_id, ("c0", "3"))

    [request] = model.requests
    assert getattr(request.messages[0], "text", None) == "Sing."
    assert request.decoding.max_tokens == 7


async def test_iterations_and_usage_are_counted_across_resumes(make_turn_fixture: MakeTurnFixture) -> None:
    usage = Usage(input_tokens=1, output_tokens=2, total_tokens=3)
    answer: list[Any] = [ToolCallChunk(0, "c0", "add", "{}"), Finished(FinishReason.tool_calls, usage)]
    turn_fixture = await make_turn_fixture(script(answer, answer, answer)).open("add", max_infer_iters=3)
    turn = await turn_fixture.turn()

    statuses = [turn.status]
    while turn.status is TurnStatus.awaiting_input:
        turn = await turn_fixture.resumed(turn.turn_id, ("c0", "3"))
        statuses.append(turn.status)

    assert statuses == [TurnStatus.awaiting_input, TurnStatus.awaiting_input, TurnStatus.completed]
    assert turn.usage == Usage(input_tokens=3, output_tokens=6, total_tokens=9)
    assert (turn.output_message.stop_reason, turn.output_message.tool_calls) == ("end_of_turn", [])


async def test_a_turn_whose_resumption_died_takes_no_other_answers_and_keeps_those_it_has(
    make_turn_fixture: MakeTurnFixture,
) -> None:
    turn_fixture = await make_turn_fixture(script(called("add"), [asyncio.Event()])).open("add")
    paused = await turn_fixture.turn()
    await die(await turn_fixture.resume(paused.turn_id, ("c0", "3")))

    with pytest.raises(Conflict, match="status is failed"):
        await turn_fixture.resume(paused.turn_id, ("c0", "4"))

    turn = await turn_fixture.get(paused.turn_id)
    assert [step.step_type for step in turn.steps] == ["inference", "tool_execution"]


async def test_a_resume_that_cannot_be_stored_leaves_the_turn_waiting(own_cloud: Cloud, tenant: str) -> None:
    model = script(called("add"), said(), said())
    turn_fixture = await TurnFixture(own_cloud.store, tenant, model).open("add")
    paused = await turn_fixture.turn()

    with own_cloud.proxy.failing("PutItem"), pytest.raises(StoreUnavailable):
        await turn_fixture.resume(paused.turn_id, ("c0", "3"))
    done = await turn_fixture.resumed(paused.turn_id, ("c0", "3"))

    assert done.status is TurnStatus.completed
    assert len(done.steps) == 3


async def test_a_note_that_is_left_behind_or_lost_is_no_matter(own_cloud: Cloud, tenant: str) -> None:
    second: list[Any] = [ToolCallChunk(0, "d0", "add", "{}"), Finished(FinishReason.tool_calls)]
    turn_fixture = await TurnFixture(own_cloud.store, tenant, script(called("add"), second, said())).open("add")
    paused = await turn_fixture.turn()
    outdated = await pending_of(turn_fixture, paused.turn_id)

    with own_cloud.proxy.failing("DeleteItem"):
        again = await turn_fixture.resumed(paused.turn_id, ("c0", "3"))
    lease = await turn_fixture.store.session_leases.acquire(*turn_fixture.ids, paused.turn_id, resume=True, seconds=30)
    await turn_fixture.store.turns.put_pending(lease, outdated)
    await lease.release()
    done = await turn_fixture.resumed(paused.turn_id, ("d0", "4"))

    assert [call.call_id for call in again.output_message.tool_calls] == ["d0"]
    assert done.status is TurnStatus.completed


async def test_a_turn_that_waits_outlives_one_that_never_began(make_turn_fixture: MakeTurnFixture) -> None:
    turn_fixture = await make_turn_fixture(script(called("add"), said())).open("add")
    paused = await turn_fixture.turn()
    await turn_fixture.store.session_leases.acquire(*turn_fixture.ids, new_id(), resume=False, seconds=0.01)
    await turn_fixture.expire_lease()

    done = await turn_fixture.resumed(paused.turn_id, ("c0", "3"))

    assert done.status is TurnStatus.completed


async def test_a_turn_that_was_given_up_cannot_be_resumed_when_its_successor_died(
    make_turn_fixture: MakeTurnFixture,
) -> None:
    turn_fixture = await make_turn_fixture(script(called("add"), [asyncio.Event()])).open("add")
    paused = await turn_fixture.turn()
    await die(await turn_fixture.start())

    with pytest.raises(Conflict, match=f"{paused.turn_id}.*status is cancelled"):
        await turn_fixture.resume(paused.turn_id, ("c0", "3"))

    assert [turn.status for turn in await turn_fixture.stored()] == [TurnStatus.cancelled, TurnStatus.failed]
    assert await turn_fixture.lease_turn() is None


async def test_the_name_of_a_turn_that_was_given_up_does_not_resume_its_successor(
    own_cloud: Cloud, tenant: str
) -> None:
    turn_fixture = await TurnFixture(own_cloud.store, tenant, script(called("add"), called("add"))).open("add")
    given_up = await turn_fixture.turn()
    successor = await turn_fixture.start()
    with own_cloud.proxy.failing("UpdateItem", "REMOVE"):
        paused = ended(await turn_fixture.play(successor))
    await expire_lease_of(successor)

    with pytest.raises(Conflict, match=f"{given_up.turn_id}.*status is cancelled"):
        await turn_fixture.resume(given_up.turn_id, ("c0", "3"))

    assert await turn_fixture.get(paused.turn_id) == paused


async def test_nothing_is_resumed_in_unknown_agents_and_sessions(make_turn_fixture: MakeTurnFixture) -> None:
    turn_fixture = await make_turn_fixture(script()).open()
    body = TurnResumeRequest(tool_responses=[])

    for agent_id, session_id in ((new_id(), turn_fixture.session_id), (turn_fixture.agent_id, new_id())):
        with pytest.raises(NotFound):
            await turn_fixture.turns.resume(agent_id, session_id, new_id(), body, RequestContext(deadline(5)))
