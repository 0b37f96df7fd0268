import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.script_model import Part, Script, called, said, script, shape
from tests.services.conftest import MakeTurnFixture
from tests.services.turn_fixture import ended
from tests.unit.loop.test_agent_loop import answers

from stint.domain.errors import ModelError, NotFound, StintError
from stint.domain.ids import new_id
from stint.domain.inference import AssistantAnswer, TextChunk
from stint.domain.llama_stack.events import TurnStart
from stint.domain.llama_stack.turns import TurnStatus
from stint.domain.run_events import StepComplete
from stint.domain.run_outcome import RunStatus
from stint.models.scripted.model import Scripted


async def test_a_turn_is_announced_streamed_and_stored(make_turn_fixture: MakeTurnFixture) -> None:
    turn_fixture = await make_turn_fixture(script([TextChunk("Hel"), *said("lo")])).open()

    events = await turn_fixture.play(await turn_fixture.start())

    assert shape(events) == [
        "turn_start",
        "start inference",
        "text Hel",
        "text lo",
        "complete inference",
        "turn_complete",
    ]
    turn = ended(events)
    assert turn == await turn_fixture.get(turn.turn_id)
    assert (turn.output_message.content, turn.output_message.stop_reason) == ("Hello", "end_of_turn")
    assert turn.completed_at is not None


async def test_the_scripted_model_holds_a_conversation(make_turn_fixture: MakeTurnFixture) -> None:
    turn_fixture = await make_turn_fixture(Scripted(word_delay=0, names=("m",))).open("get_weather")

    paused = await turn_fixture.turn("get_weather in Oslo")
    [call] = paused.output_message.tool_calls
    done = await turn_fixture.resumed(paused.turn_id, (call.call_id, "rain"))
    after = await turn_fixture.turn("thanks")

    assert done.output_message.content == "get_weather answered: rain"
    assert after.output_message.content == "You said: thanks"


async def test_every_step_and_the_end_are_stored_and_the_session_free_before_they_are_told(
    make_turn_fixture: MakeTurnFixture,
) -> None:
    turn_fixture = await make_turn_fixture(script(called("nosuch"), said())).open()
    turn = await turn_fixture.start()

    async for event in turn_fixture.turns.run(turn):
        seen = await turn_fixture.store.turns.get(*turn_fixture.ids, turn.turn_id)
        if isinstance(event, TurnStart):
            assert seen.header == turn.log.turn.header
        elif isinstance(event, StepComplete):
            assert event.step_details == seen.steps[-1]
        last = event

    assert shape([last]) == ["turn_complete"]
    assert seen.status is RunStatus.completed


@pytest.mark.parametrize(
    "answer", [said(), called("add"), [ModelError("no")]], ids=["turn_complete", "turn_awaiting_input", "failed"]
)
async def test_a_client_goes_on_from_inside_the_stream(make_turn_fixture: MakeTurnFixture, answer: list[Part]) -> None:
    turn_fixture = await make_turn_fixture(script(answer, said("next"))).open("add")
    turn = await turn_fixture.start()
    following = None

    async for event in turn_fixture.turns.run(turn):
        if shape([event])[0].split()[0] in ("turn_complete", "turn_awaiting_input", "failed"):
            assert await turn_fixture.lease_turn() is None
            following = await turn_fixture.turn("go on")

    assert following is not None
    assert following.output_message.content == "next"


async def test_a_client_resumes_from_inside_the_stream(make_turn_fixture: MakeTurnFixture) -> None:
    turn_fixture = await make_turn_fixture(script(called("add"), said("3"))).open("add")
    turn = await turn_fixture.start()
    resumed = None

    async for event in turn_fixture.turns.run(turn):
        if shape([event]) == ["turn_awaiting_input"]:
            resumed = await turn_fixture.resumed(turn.turn_id, ("c0", "3"))

    assert resumed is not None
    assert resumed.status is TurnStatus.completed


async def test_a_new_turn_ends_the_one_that_waits_as_cancelled(make_turn_fixture: MakeTurnFixture) -> None:
    model = script(called("add", text="So"), said("new"))
    turn_fixture = await make_turn_fixture(model).open("add")
    waiting = await turn_fixture.turn("one")

    await turn_fixture.turn("two")

    cancelled, _ = await turn_fixture.stored()
    assert (cancelled.status, cancelled.output_message.tool_calls) == (TurnStatus.cancelled, [])
    assert await turn_fixture.store.turns.get_pending(*turn_fixture.ids, waiting.turn_id) is None
    _, answer, closing, _ = model.requests[1].messages
    assert isinstance(answer, AssistantAnswer)
    assert closing == model.requests[1].messages[2]
    with pytest.raises(StintError) as caught:
        await turn_fixture.resume(waiting.turn_id, ("c0", "3"))
    assert caught.value.code == "turn_not_awaiting_input"


async def test_a_turn_changes_its_agents_configuration_for_itself_alone(make_turn_fixture: MakeTurnFixture) -> None:
    model = script(said(), said())
    turn_fixture = await make_turn_fixture(model).open(instructions="Be brief.")

    await turn_fixture.turn(instructions="Sing.", sampling_params={"max_tokens": 5})
    await turn_fixture.turn()

    first, second = model.requests
    assert [getattr(each.messages[0], "text", None) for each in (first, second)] == ["Sing.", "Be brief."]
    assert [each.decoding.max_tokens for each in (first, second)] == [5, None]


async def test_steps_are_read_by_their_ids(make_turn_fixture: MakeTurnFixture) -> None:
    turn_fixture = await make_turn_fixture(script(called("nosuch"), said())).open()
    turn = await turn_fixture.turn()

    steps = [
        await turn_fixture.turns.step(turn_fixture.agent_id, turn_fixture.session_id, turn.turn_id, s.step_id)
        for s in turn.steps
    ]

    assert steps == turn.steps
    with pytest.raises(NotFound, match="Step"):
        await turn_fixture.turns.step(turn_fixture.agent_id, turn_fixture.session_id, turn.turn_id, new_id())


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(answers, min_size=3, max_size=3))
async def test_whatever_a_model_does_a_turn_ends_once_as_stored_and_leaves_the_session_free(
    make_turn_fixture: MakeTurnFixture, played: list[list[Part]]
) -> None:
    turn_fixture = await make_turn_fixture(Script(played)).open("add", max_infer_iters=3)

    turn = ended(await turn_fixture.play(await turn_fixture.start()))

    assert turn == await turn_fixture.get(turn.turn_id)
    assert await turn_fixture.lease_turn() is None
