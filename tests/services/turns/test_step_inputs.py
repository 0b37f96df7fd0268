"""The inputs of model calls of turns, rebuilt afterwards, are those that the model got."""

from collections.abc import Sequence

import pytest
from tests.script_model import Script, called, said
from tests.services.conftest import MakeTurnFixture
from tests.services.turn_fixture import TurnFixture
from tests.services.turns.test_compacted_sessions import MANAGED
from tests.services.turns.test_prefix_of_turns import TALKS, Talk
from tests.services.turns.test_turn_tools import FakeTools, Making
from tests.store.conftest import Cloud

from stint.domain.errors import InvalidRequest, ModelError, NotFound
from stint.domain.inference import InferenceRequest, TextChunk
from stint.domain.llama_stack.turns import Turn
from stint.domain.model_inputs import ModelInput
from stint.services.runs.shown_inputs import RebuiltCall
from stint.services.turns.session_recorder import SEGMENT_TURNS
from stint.tools.port import NO_PROVIDER_DATA


async def rebuild(process: TurnFixture, turn_id: str, step_id: str) -> RebuiltCall:
    rebuilding = process.services.step_inputs.rebuild
    return await rebuilding(process.agent_id, process.session_id, turn_id, step_id, NO_PROVIDER_DATA)


async def read(process: TurnFixture, turn_id: str, step_id: str, start_index: int = 0) -> ModelInput:
    reading = process.services.step_inputs.read
    ids = process.agent_id, process.session_id, turn_id, step_id
    return await reading(*ids, start_index, provider_data=NO_PROVIDER_DATA)


def model_calls(turn: Turn) -> list[str]:
    """Return the ids of the steps of a turn that called the model."""
    ids = [step.step_id for step in turn.steps if step.step_type == "inference"]
    last = turn.unfinished_step
    return [*ids, last.step_id] if last is not None and last.step_type == "inference" else ids


async def rebuild_all(process: TurnFixture) -> list[RebuiltCall]:
    session = await process.sessions.get(process.agent_id, process.session_id)
    return [await rebuild(process, turn.turn_id, step_id) for turn in session.turns for step_id in model_calls(turn)]


def without_labels(request: InferenceRequest) -> tuple[object, ...]:
    return request.messages, request.tools, request.tool_choice, request.decoding, request.response_format


def assert_sent(rebuilt: Sequence[RebuiltCall], sent: Sequence[InferenceRequest]) -> None:
    """Assert that calls were rebuilt as they were sent, in this order. A call without a step was refused."""
    left = [*sent]
    for call in rebuilt:
        assert call.request in left
        while left.pop(0) != call.request:
            pass


@pytest.mark.parametrize(("seed", "steps"), [*((seed, 9) for seed in range(TALKS)), (TALKS, SEGMENT_TURNS + 5)])
async def test_the_calls_of_a_session_are_rebuilt_as_they_were_sent(
    cloud: Cloud, tenant: str, seed: int, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Turns with tools, resumed, merged, cancelled, failed, retried, and of processes that died."""
    monkeypatch.setattr(TurnFixture, "with_cache_keys", frozenset({"test"}))
    talk = Talk(cloud, tenant, seed)
    await talk.open()
    acts = [talk.say_something, talk.think, talk.think_of_tools, talk.run_tools, talk.merge, talk.ask_client]
    for _ in range(steps):
        await talk.random.choice([*acts, talk.ignore_client, talk.fail, talk.retry, talk.die])()
        talk.change_process()

    rebuilt = await rebuild_all(talk.process)

    assert len(rebuilt) >= steps
    assert_sent(rebuilt, talk.model.requests)


@pytest.mark.parametrize("cache_bytes", [0, 1_000_000])
async def test_the_calls_after_a_long_history_have_its_cuts(cloud: Cloud, tenant: str, cache_bytes: int) -> None:
    model = Script([said("Fine") for _ in range(40)])
    fixture = TurnFixture(cloud.store, tenant, model, history=8_000, transcript_cache_bytes=cache_bytes)
    process = await fixture.open()
    for number in range(40):
        await process.turn(f"Question {number} " + "x" * 200)

    rebuilt = await rebuild_all(process)

    assert [call.request for call in rebuilt] == model.requests
    assert not rebuilt[0].is_history_cut
    assert rebuilt[-1].is_history_cut
    assert len(rebuilt[-1].request.messages) < 50


async def test_a_resumed_turn_after_a_long_history_is_rebuilt(cloud: Cloud, tenant: str) -> None:
    model = Script([])
    process = await TurnFixture(cloud.store, tenant, model, history=8_000).open("add")
    for number in range(20):
        model.answers += [called("add", text="y" * 300), said("Fine")]
        turn = await process.turn(f"Question {number} " + "x" * 200)
        await process.resumed(turn.turn_id, ("c0", "z" * 300))

    rebuilt = await rebuild_all(process)

    assert [call.request for call in rebuilt] == model.requests
    assert rebuilt[-1].is_history_cut


async def test_a_history_whose_last_turn_alone_is_too_long_is_left_out(cloud: Cloud, tenant: str) -> None:
    model = Script([said("Fine"), said("Fine")])
    process = await TurnFixture(cloud.store, tenant, model, history=8_000).open()
    await process.turn("x" * 9_000)
    await process.turn("And?")

    rebuilt = await rebuild_all(process)

    assert [call.request for call in rebuilt] == model.requests
    assert [call.is_history_cut for call in rebuilt] == [False, True]


async def test_a_choice_of_a_tool_is_that_of_each_call(cloud: Cloud, tenant: str) -> None:
    model = Script([called("add"), called("add"), said()])
    process = await Making(cloud, tenant, FakeTools()).turn_fixture(model, tool_config={"tool_choice": "required"})
    await process.turn("Compute.")

    rebuilt = await rebuild_all(process)

    assert [call.request for call in rebuilt] == model.requests
    assert [call.request.tool_choice for call in rebuilt] == ["required", "auto", "auto"]


async def test_the_overrides_of_a_turn_are_those_of_its_calls(make_turn_fixture: MakeTurnFixture) -> None:
    model = Script([said(), said()])
    process = await make_turn_fixture(model).open()
    sampling = {"max_tokens": 7, "strategy": {"type": "top_p", "temperature": 0.3, "top_p": 0.5}, "stop": ["."]}
    await process.turn("One", instructions="Be rude.", sampling_params=sampling)
    await process.turn("Two")

    rebuilt = await rebuild_all(process)

    assert [call.request for call in rebuilt] == model.requests
    assert rebuilt[0].request.decoding.max_tokens == 7


async def test_the_call_in_which_a_turn_failed_is_rebuilt(make_turn_fixture: MakeTurnFixture) -> None:
    model = Script([called("nosuch"), [TextChunk("Hi"), ModelError("Broken.")]])
    process = await make_turn_fixture(model).open()
    await process.turn("Hello")

    assert [call.request for call in await rebuild_all(process)] == model.requests


async def test_compacted_sessions_are_rebuilt(make_turn_fixture: MakeTurnFixture) -> None:
    model = Script([said("x" * 8000), said("a summary"), said("Fine"), said("Well")])
    process = await make_turn_fixture(model).open(context_management=MANAGED)
    await process.turn("y" * 8000)
    await process.turn("And?")
    await process.turn("And then?")

    rebuilt = await rebuild_all(process)

    summaries = [request for request in model.requests if request not in [call.request for call in rebuilt]]
    assert len(summaries) == 1
    assert_sent(rebuilt, model.requests)


async def test_other_steps_have_no_input(making: Making) -> None:
    process = await making.turn_fixture(Script([called("add"), said()]))
    turn = await process.turn("Compute.")

    with pytest.raises(InvalidRequest, match="is a tool_execution step"):
        await rebuild(process, turn.turn_id, turn.steps[1].step_id)


async def test_unknown_steps_and_turns_are_not_found(make_turn_fixture: MakeTurnFixture) -> None:
    process = await make_turn_fixture(Script([said()])).open()
    turn = await process.turn()
    unknown = "01990000-0002-7000-8000-00000000000c"

    with pytest.raises(NotFound, match="Step"):
        await rebuild(process, turn.turn_id, unknown)
    with pytest.raises(NotFound, match="Turn"):
        await rebuild(process, unknown, turn.steps[0].step_id)


async def test_a_toolgroup_that_is_gone_is_said_to_be_unknown(making: Making) -> None:
    process = await making.turn_fixture(Script([said()]), instructions="Be kind.")
    turn = await process.turn("Hello")
    await process.services.toolgroups.unregister("math")

    shown = await read(process, turn.turn_id, turn.steps[0].step_id)

    assert shown.tools is None
    [told] = shown.unknown
    assert "Toolgroup 'math' is not registered" in told
    assert [message["content"] for message in shown.messages] == ["Be kind.", "Hello"]


@pytest.fixture
def making(cloud: Cloud, tenant: str) -> Making:
    return Making(cloud, tenant, FakeTools())


async def test_reading_an_input_costs_no_write_and_a_unit_per_four_kilobytes(
    make_turn_fixture: MakeTurnFixture, cloud: Cloud
) -> None:
    process = await make_turn_fixture(Script([said(), said()])).open()
    await process.turn("Hello")
    turn = await process.turn("And?")
    cloud.forget()

    shown = await read(process, turn.turn_id, turn.steps[0].step_id)

    assert len(shown.messages) == 3
    assert dict(cloud.calls) == {"GetItem": 2, "Query": 2}
    assert sum(cloud.units.values()) == 4
