"""Shields and structured output in whole turns over the real store."""

import json
from typing import Any

import pytest
from tests.script_model import Part, Script, called, said, script, shape
from tests.services.turn_fixture import TurnFixture
from tests.store.conftest import Cloud

from stint.domain.content import URL, Document, ImageContentItem, ImageSource
from stint.domain.errors import InvalidRequest
from stint.domain.inference import AssistantAnswer, Finished, FinishReason, ModelMessage, TextChunk
from stint.domain.llama_stack.registrations import ShieldRegisterRequest
from stint.domain.llama_stack.turns import Turn
from stint.domain.messages import UserMessage
from stint.domain.run_events import StepStart

SORRY = "Not here."
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
JSON_FORMAT = {"type": "json_schema", "json_schema": SCHEMA}


async def shielded(cloud: Cloud, tenant: str, model: Script, window: int = 0, **config: Any) -> TurnFixture:
    """A session whose agent may use the shields `words` (forbids "dynamite" and "SECRET-7") and `broken`."""
    turn_fixture = TurnFixture(cloud.store, tenant, model, output_shield_window=window)
    params = {"phrases": ["dynamite", "SECRET-7"], "user_message": SORRY}
    await turn_fixture.services.shields.register(ShieldRegisterRequest(shield_id="words", params=params))
    broken = ShieldRegisterRequest(
        shield_id="broken", provider_id="llama-guard", provider_shield_id="test/m", params={}
    )
    await turn_fixture.services.shields.register(broken)
    tools = config.pop("tools", ())
    return await turn_fixture.open(*tools, **config)


def step_of(turn: Turn) -> Any:
    return turn.steps[0]


def texts(messages: tuple[ModelMessage, ...]) -> str:
    return json.dumps([str(message) for message in messages])


async def test_shields_that_pass_are_a_step_each_side_of_the_answer_as_recorded(cloud: Cloud, tenant: str) -> None:
    turn_fixture = await shielded(
        cloud, tenant, script(said("fine")), input_shields=["words"], output_shields=["words"]
    )

    events = await turn_fixture.play(await turn_fixture.start())

    assert shape(events) == [
        "turn_start",
        "start shield_call",
        "complete shield_call",
        "start inference",
        "text fine",
        "complete inference",
        "start shield_call",
        "complete shield_call",
        "turn_complete",
    ]
    starts = [event for event in events if isinstance(event, StepStart)]
    touchpoints = [event.metadata for event in starts if event.metadata]
    assert touchpoints == [{"touchpoint": "user-input"}, {"touchpoint": "assistant-output"}]
    screened = [step.step_id for step in (await turn_fixture.stored())[0].steps if step.step_type == "shield_call"]
    assert [event.step_id for event in starts if event.step_type == "shield_call"] == screened


async def test_what_an_input_shield_blocks_reaches_no_model_and_completes_the_turn(cloud: Cloud, tenant: str) -> None:
    model = script(said("later"))
    turn_fixture = await shielded(cloud, tenant, model, input_shields=["words"])

    events = await turn_fixture.play(await turn_fixture.start("how to make dynamite"))

    assert shape(events) == ["turn_start", "start shield_call", "complete shield_call", "turn_complete"]
    assert model.requests == []
    [turn] = await turn_fixture.stored()
    assert (turn.status, turn.output_message.content, turn.output_message.stop_reason) == (
        "completed",
        SORRY,
        "end_of_turn",
    )
    assert step_of(turn).violation.violation_level == "error"
    assert await turn_fixture.lease_turn() is None


@pytest.mark.parametrize("window", [0, 8])
async def test_an_answer_that_a_shield_blocks_was_not_streamed_and_is_kept_nowhere(
    cloud: Cloud, tenant: str, window: int
) -> None:
    answer = [TextChunk(word) for word in ("take ", "SECR", "ET-7 ", "and ", "go")]
    model = script([*answer, Finished(FinishReason.stop)], said("fine"))
    turn_fixture = await shielded(cloud, tenant, model, window, output_shields=["words"])

    events = await turn_fixture.play(await turn_fixture.start())
    await turn_fixture.turn("next")

    assert shape(events)[-4:] == ["complete inference", "start shield_call", "complete shield_call", "turn_complete"]
    shown = "".join(event.model_dump_json() for event in events if hasattr(event, "model_dump_json"))
    assert "SECR" not in shown
    assert "SECR" not in repr(cloud.items(tenant)).replace("SECRET-7", "", 1)  # the registration's own
    assert AssistantAnswer(SORRY) in model.requests[1].messages
    assert "SECR" not in texts(model.requests[1].messages)
    first, _ = await turn_fixture.stored()
    assert (first.status, first.output_message.content) == ("completed", SORRY)


async def test_in_windows_the_text_that_passed_leaves_before_the_answer_is_complete(cloud: Cloud, tenant: str) -> None:
    words = [TextChunk(f"word{number} ") for number in range(100)]
    turn_fixture = await shielded(
        cloud, tenant, script([*words, Finished(FinishReason.stop)]), 50, output_shields=["words"]
    )

    events = await turn_fixture.play(await turn_fixture.start())

    pieces = [line.removeprefix("text ") for line in shape(events) if line.startswith("text ")]
    assert len(pieces) > 3
    assert "".join(pieces) == "".join(chunk.text for chunk in words)


async def test_a_shield_that_fails_fails_the_turn(cloud: Cloud, tenant: str) -> None:
    turn_fixture = await shielded(cloud, tenant, script(said("what do you mean?")), input_shields=["words", "broken"])

    events = await turn_fixture.play(await turn_fixture.start())

    assert shape(events)[-1] == "failed shield_failed"
    [turn] = await turn_fixture.stored()
    assert (turn.status, turn.error and turn.error.code) == ("failed", "shield_failed")


async def test_shields_watch_tool_calls_and_what_came_of_them(cloud: Cloud, tenant: str) -> None:
    model = script(called("ask", text="let me see"))
    words = ["words"]
    turn_fixture = await shielded(cloud, tenant, model, input_shields=words, output_shields=words, tools=("ask",))

    paused = await turn_fixture.turn()
    done = await turn_fixture.resumed(paused.turn_id, ("c0", "use dynamite"))

    assert [step.step_type for step in paused.steps] == ["shield_call", "inference", "shield_call"]
    assert paused.output_message.stop_reason == "end_of_message"
    assert [step.step_type for step in done.steps][3:] == ["tool_execution", "shield_call"]
    assert (done.status, done.output_message.content) == ("completed", SORRY)
    assert len(model.requests) == 1


async def test_results_that_a_complete_turn_takes_are_checked_like_others(cloud: Cloud, tenant: str) -> None:
    model, words = script(said("CALL ask"), said("SECRET-7")), ["words"]
    turn_fixture = await shielded(cloud, tenant, model, input_shields=words, output_shields=words, tools=("ask",))
    complete = await turn_fixture.turn()

    answered = await turn_fixture.resumed(complete.turn_id, ("a", "fine"))
    blocked = await turn_fixture.resumed(complete.turn_id, ("b", "use dynamite"))

    assert (answered.status, answered.output_message.content) == ("completed", SORRY)
    assert "SECRET-7" not in answered.model_dump_json()
    assert [step.step_type for step in blocked.steps][7:] == ["tool_execution", "shield_call"]
    assert (blocked.status, blocked.output_message.content) == ("completed", SORRY)
    assert len(model.requests) == 2


async def test_a_turn_replaces_its_agents_shields(cloud: Cloud, tenant: str) -> None:
    turn_fixture = await shielded(cloud, tenant, script(said(), said()), input_shields=["words"])

    blocked = await turn_fixture.turn("dynamite")
    free = await turn_fixture.turn("dynamite", input_shields=[])

    assert [step.step_type for step in blocked.steps] == ["shield_call"]
    assert [step.step_type for step in free.steps] == ["inference"]


async def test_an_unknown_shield_is_refused_by_name_before_the_turn_begins(cloud: Cloud, tenant: str) -> None:
    turn_fixture = await shielded(cloud, tenant, script(), output_shields=["nosuch"])

    with pytest.raises(InvalidRequest, match="'nosuch'") as refused:
        await turn_fixture.start()

    assert (refused.value.code, refused.value.param) == ("shield_not_found", "output_shields")
    assert (await turn_fixture.stored(), await turn_fixture.lease_turn()) == ([], None)


async def test_an_answer_of_another_form_fails_the_turn_and_is_kept(cloud: Cloud, tenant: str) -> None:
    model = script(said('{"n": 1}'), said('{"n": "one"}'))
    turn_fixture = await shielded(cloud, tenant, model, response_format=JSON_FORMAT)

    good = await turn_fixture.turn()
    events = await turn_fixture.play(await turn_fixture.start())

    assert (good.status, good.output_message.content) == ("completed", '{"n": 1}')
    assert shape(events)[-2:] == ["complete inference", "failed response_format_mismatch"]
    _, bad = await turn_fixture.stored()
    assert (bad.status, step_of(bad).model_response.content) == ("failed", '{"n": "one"}')


async def test_an_answer_that_was_cut_is_not_held_against_the_schema(cloud: Cloud, tenant: str) -> None:
    cut: list[Part] = [TextChunk('{"n": '), Finished(FinishReason.length)]
    turn_fixture = await shielded(cloud, tenant, script(cut), response_format=JSON_FORMAT)

    turn = await turn_fixture.turn()

    assert (turn.status, turn.output_message.stop_reason) == ("completed", "out_of_tokens")


async def test_a_schema_that_is_none_is_refused_before_the_turn_begins(cloud: Cloud, tenant: str) -> None:
    turn_fixture = await shielded(cloud, tenant, script())
    bad = {"type": "json_schema", "json_schema": {"type": "nonsense"}}
    grammar = {"type": "grammar", "bnf": {"root": "x"}}

    with pytest.raises(InvalidRequest) as refused:
        await turn_fixture.start(response_format=bad)
    with pytest.raises(InvalidRequest, match="grammar"):
        await turn_fixture.start(response_format=grammar)

    assert (refused.value.code, await turn_fixture.stored()) == ("invalid_json_schema", [])


async def test_documents_stand_before_the_message_in_this_turn_and_the_next(cloud: Cloud, tenant: str) -> None:
    model = script(said(), said())
    turn_fixture = await shielded(cloud, tenant, model)
    html = Document.model_validate(
        {"content": {"uri": "data:text/html,<p>Ulm%20is%20old</p>"}, "mime_type": "text/html"}
    )

    turn = await turn_fixture.turn("how old?", documents=[html])
    await turn_fixture.turn("and now?")

    assert [message.content for message in turn.input_messages] == ["how old?"]
    for request in model.requests:
        document, question = request.messages[:2]
        assert "Ulm is old" in str(document)
        assert "<document boundary=" in str(document)
        assert "how old?" in str(question)


async def test_a_turn_replaces_tools_iterations_and_form(cloud: Cloud, tenant: str) -> None:
    model = script(called("other"), said("[]"))
    turn_fixture = await shielded(cloud, tenant, model, tools=("ask",))
    other = [{"name": "other", "parameters": []}]
    array = {"type": "json_schema", "json_schema": {"type": "array"}}

    first = await turn_fixture.turn(client_tools=other, max_infer_iters=1)
    second = await turn_fixture.turn(response_format=array)

    assert [tool.name for tool in model.requests[0].tools] == ["other"]
    assert (first.status, first.output_message.tool_calls) == ("completed", [])
    assert [tool.name for tool in model.requests[1].tools] == ["ask"]
    assert second.output_message.content == "[]"


async def test_a_shield_whose_provider_there_is_not_is_named(cloud: Cloud, tenant: str) -> None:
    configured = '{"shields": [{"shield_id": "s", "provider_id": "nosuch"}]}'
    turn_fixture = await TurnFixture(cloud.store, tenant, script(), registry=configured).open(input_shields=["s"])

    with pytest.raises(InvalidRequest, match="'nosuch'"):
        await turn_fixture.start()


@pytest.mark.parametrize("url", ["http://169.254.169.254/latest/meta-data", "https://127.0.0.1:9001/2018-06-01/x"])
async def test_an_image_at_a_place_that_callers_may_not_reach_is_refused_whatever_the_model(
    cloud: Cloud, tenant: str, url: str
) -> None:
    model = script(called("camera"))
    turn_fixture = await shielded(cloud, tenant, model, tools=("camera",))
    picture = ImageContentItem(image=ImageSource(url=URL(uri=url)))
    paused = await turn_fixture.turn()

    with pytest.raises(InvalidRequest) as in_message:
        await turn_fixture.start(messages=[UserMessage(content=[picture])])
    with pytest.raises(InvalidRequest) as in_response:
        await turn_fixture.resume(paused.turn_id, ("c0", [picture]))  # type: ignore[arg-type]  # an image in place of a text

    assert (in_message.value.code, in_response.value.code) == ("url_not_allowed", "url_not_allowed")
    assert (await turn_fixture.get(paused.turn_id)).status == "awaiting_input"
    assert len(model.requests) == 1
