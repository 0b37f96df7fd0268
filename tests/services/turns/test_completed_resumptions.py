"""A complete turn that takes tool responses: clients that read calls out of the model's text resume it."""

import asyncio
from contextlib import aclosing
from typing import Any

import pytest
from tests.script_model import called, collect, said, script, shape
from tests.services.conftest import MakeTurnFixture
from tests.services.turn_fixture import TurnFixture, die, ended
from tests.store.conftest import Cloud

from stint.domain.errors import Conflict, InvalidRequest
from stint.domain.inference import AssistantAnswer, Finished, FinishReason, TextChunk, ToolResult, Usage, UserInput
from stint.domain.llama_stack.turns import TurnStatus
from stint.domain.steps import ToolExecutionStep
from stint.domain.tools import ToolCall

USAGE = Usage(input_tokens=1, output_tokens=2, total_tokens=3)


def parsed(call_id: str) -> ToolCall:
    """The call that a provider is told of: its arguments are in the text, where only the client finds them."""
    return ToolCall(call_id=call_id, tool_name="t", arguments={}, arguments_json="{}")


def counted(text: str) -> list[Any]:
    return [TextChunk(text), Finished(FinishReason.stop, USAGE)]


async def test_a_complete_turn_goes_on_under_the_same_id(make_turn_fixture: MakeTurnFixture) -> None:
    model = script(said("CALL t"), said("It is 3."))
    turn_fixture = await make_turn_fixture(model).open("t")
    first = await turn_fixture.turn()

    events = await turn_fixture.play(await turn_fixture.resume(first.turn_id, ("mine", "3")))

    assert shape(events) == [
        "complete tool_execution",
        "start inference",
        "text It is 3.",
        "complete inference",
        "turn_complete",
    ]
    done = ended(events)
    assert done == await turn_fixture.get(first.turn_id)
    assert [done] == await turn_fixture.stored()
    assert (done.turn_id, done.started_at, done.steps[0]) == (first.turn_id, first.started_at, first.steps[0])
    assert (done.status, done.output_message.content) == (TurnStatus.completed, "It is 3.")
    step = done.steps[1]
    assert isinstance(step, ToolExecutionStep)
    assert step.tool_calls == []
    assert [(each.call_id, each.tool_name, each.content) for each in step.tool_responses] == [("mine", "t", "3")]
    assert len({each.step_id for each in done.steps}) == 3
    assert (
        await turn_fixture.turns.step(turn_fixture.agent_id, turn_fixture.session_id, done.turn_id, step.step_id)
        == step
    )
    assert model.requests[1].messages[-2:] == (
        AssistantAnswer("CALL t", (parsed("mine"),)),
        ToolResult("mine", "t", "3"),
    )


async def test_it_resumes_repeatedly_and_the_next_turn_sees_all(
    make_turn_fixture: MakeTurnFixture,
) -> None:
    """It goes on as often as its client finds calls, and the next turn sees all in order."""
    model = script(said("CALL t"), said("CALL t again"), said("It is 7."), said("Bye"))
    turn_fixture = await make_turn_fixture(model).open("t")
    turn = await turn_fixture.turn("one")

    await turn_fixture.resumed(turn.turn_id, ("a", "3"))
    done = await turn_fixture.resumed(turn.turn_id, ("b", "4"), ("c", "5"))
    after = await turn_fixture.turn("two")

    assert [step.step_type for step in done.steps] == ["inference", "tool_execution"] * 2 + ["inference"]
    assert [each.turn_id for each in await turn_fixture.stored()] == [turn.turn_id, after.turn_id]
    assert model.requests[3].messages == (
        UserInput("one"),
        AssistantAnswer("CALL t", (parsed("a"),)),
        ToolResult("a", "t", "3"),
        AssistantAnswer("CALL t again", (parsed("b"), parsed("c"))),
        ToolResult("b", "t", "4"),
        ToolResult("c", "t", "5"),
        AssistantAnswer("It is 7."),
        UserInput("two"),
    )


async def test_the_model_may_call_the_clients_tools_itself_in_what_follows(make_turn_fixture: MakeTurnFixture) -> None:
    turn_fixture = await make_turn_fixture(script(said("CALL t"), called("t"), said("CALL t"), said("done"))).open("t")
    turn = await turn_fixture.turn()

    paused = await turn_fixture.resumed(turn.turn_id, ("a", "3"))
    complete = await turn_fixture.resumed(turn.turn_id, ("c0", "4"))
    done = await turn_fixture.resumed(turn.turn_id, ("b", "5"))

    assert [each.status.value for each in (paused, complete, done)] == ["awaiting_input", "completed", "completed"]
    assert [call.call_id for call in paused.output_message.tool_calls] == ["c0"]
    assert len(done.steps) == 7


async def test_calls_that_the_model_was_left_without_an_answer_to_can_be_answered(
    make_turn_fixture: MakeTurnFixture,
) -> None:
    model = script(called("t"), said("done"))
    turn_fixture = await make_turn_fixture(model).open("t", max_infer_iters=1)
    turn = await turn_fixture.turn()

    done = await turn_fixture.resumed(turn.turn_id, ("c0", "3"))

    step = done.steps[1]
    assert isinstance(step, ToolExecutionStep)
    assert [(call.call_id, call.tool_name) for call in step.tool_calls] == [("c0", "t")]
    assert model.requests[1].messages[-1] == ToolResult("c0", "t", "3")
    assert done.output_message.content == "done"


async def test_usage_is_counted_over_all_parts(make_turn_fixture: MakeTurnFixture) -> None:
    turn_fixture = await make_turn_fixture(script(counted("CALL t"), counted("CALL t"), counted("done"))).open("t")
    turn = await turn_fixture.turn()

    await turn_fixture.resumed(turn.turn_id, ("a", "3"))
    done = await turn_fixture.resumed(turn.turn_id, ("b", "3"))

    assert done.usage == USAGE + USAGE + USAGE


@pytest.mark.parametrize(
    "given", [[], ["a", "b", "a"], [str(n) for n in range(129)]], ids=["none", "twice", "too many"]
)
async def test_responses_that_answer_no_calls_change_nothing(
    make_turn_fixture: MakeTurnFixture, cloud: Cloud, given: list[str]
) -> None:
    turn_fixture = await make_turn_fixture(script(said("CALL t"))).open("t")
    turn = await turn_fixture.turn()
    before = cloud.items(turn_fixture.tenant)

    with pytest.raises(InvalidRequest, match=turn.turn_id) as caught:
        await turn_fixture.resume(turn.turn_id, *((call_id, "3") for call_id in given))

    assert (caught.value.code, caught.value.param) == ("tool_responses_mismatch", "tool_responses")
    assert cloud.items(turn_fixture.tenant) == before


async def test_call_ids_that_are_taken_are_refused(make_turn_fixture: MakeTurnFixture, cloud: Cloud) -> None:
    turn_fixture = await make_turn_fixture(script(called("t"), said("CALL t"), said("CALL t"))).open("t")
    given_up = await turn_fixture.turn()
    turn = await turn_fixture.turn()
    [theirs] = given_up.output_message.tool_calls
    await turn_fixture.resumed(turn.turn_id, ("a", "3"))
    before = cloud.items(turn_fixture.tenant)

    for call_id in ("a", theirs.call_id):
        with pytest.raises(Conflict, match=f"{turn.turn_id}.* already used: {call_id}\\.") as caught:
            await turn_fixture.resume(turn.turn_id, ("new", "3"), (call_id, "3"))
        assert caught.value.code == "turn_not_awaiting_input"

    assert cloud.items(turn_fixture.tenant) == before


async def test_only_the_last_turn_goes_on(make_turn_fixture: MakeTurnFixture) -> None:
    turn_fixture = await make_turn_fixture(script(said("CALL t"), said("CALL t"))).open("t")
    first = await turn_fixture.turn()
    await turn_fixture.turn()

    with pytest.raises(Conflict, match=f"{first.turn_id}.*last turn") as caught:
        await turn_fixture.resume(first.turn_id, ("a", "3"))

    assert caught.value.code == "turn_not_awaiting_input"
    assert await turn_fixture.get(first.turn_id) == first
    assert await turn_fixture.lease_turn() is None


async def test_of_many_resumes_at_once_one_wins(make_turn_fixture: MakeTurnFixture) -> None:
    turn_fixture = await make_turn_fixture(script(said("CALL t"), *[said("done")] * 5)).open("t")
    turn = await turn_fixture.turn()

    outcomes = await asyncio.gather(
        *(turn_fixture.resumed(turn.turn_id, ("a", str(n))) for n in range(5)), return_exceptions=True
    )

    losers = [each for each in outcomes if isinstance(each, BaseException)]
    assert [type(each) for each in losers] == [Conflict] * 4
    assert len((await turn_fixture.get(turn.turn_id)).steps) == 3


async def test_of_a_resume_and_new_turns_at_once_one_wins(make_turn_fixture: MakeTurnFixture) -> None:
    gate = asyncio.Event()
    turn_fixture = await make_turn_fixture(script(said("CALL t"), *[[gate, *said("done")]] * 4)).open("t")
    turn = await turn_fixture.turn()

    outcomes = await asyncio.gather(
        turn_fixture.resume(turn.turn_id, ("a", "3")),
        *(turn_fixture.start() for _ in range(3)),
        return_exceptions=True,
    )

    [winner] = [each for each in outcomes if not isinstance(each, BaseException)]
    losers = [each for each in outcomes if isinstance(each, Conflict)]
    assert [each.code for each in losers] == ["session_locked"] * 3
    gate.set()
    assert ended(await turn_fixture.play(winner)).status is TurnStatus.completed
    assert await turn_fixture.lease_turn() is None


async def test_while_it_goes_on_it_is_in_progress_and_keeps_the_answer_it_had(
    make_turn_fixture: MakeTurnFixture,
) -> None:
    turn_fixture = await make_turn_fixture(script(counted("CALL t"), [asyncio.Event()])).open("t")
    first = await turn_fixture.turn()

    turn = await turn_fixture.resume(first.turn_id, ("a", "3"))

    shown = await turn_fixture.get(first.turn_id)
    assert (shown.status, shown.completed_at, shown.usage) == (TurnStatus.in_progress, None, USAGE)
    assert shown.output_message == first.output_message
    assert [step.step_type for step in shown.steps] == ["inference", "tool_execution"]
    assert (await turn_fixture.sessions.get(turn_fixture.agent_id, turn_fixture.session_id)).turns == [shown]
    await die(turn)


async def test_a_client_resumes_from_inside_the_stream_of_a_complete_turn(make_turn_fixture: MakeTurnFixture) -> None:
    turn_fixture = await make_turn_fixture(script(said("CALL t"), said("done"))).open("t")
    turn = await turn_fixture.start()
    resumed = None

    async with aclosing(turn_fixture.turns.run(turn)) as events:
        async for event in events:
            if shape([event]) == ["turn_complete"]:
                resumed = await turn_fixture.resumed(turn.turn_id, ("a", "3"))

    assert resumed is not None
    assert resumed.output_message.content == "done"


async def test_each_resume_costs_four_write_units_and_one_round_trip(own_cloud: Cloud, tenant: str) -> None:
    """The turn is complete, and the round trip to the storage is the one before the model."""
    turn_fixture = await TurnFixture(
        own_cloud.store, tenant, script(said("CALL t"), said("CALL t"), said("done"))
    ).open("t")
    first = await turn_fixture.turn()
    await turn_fixture.resumed(first.turn_id, ("a", "3"))
    own_cloud.forget()

    with own_cloud.proxy.held_together("UpdateItem", "GetItem", "GetItem", "GetItem"):
        turn = await turn_fixture.resume(first.turn_id, ("b", "3"))
    await collect(turn_fixture.turns.run(turn))

    assert own_cloud.calls == {"UpdateItem": 2, "GetItem": 3, "PutItem": 2}
    assert own_cloud.units["UpdateItem"] + own_cloud.units["PutItem"] == 4
