"""Shields of single tools in whole turns over the real store: resumes, the next turn, replay and receipts."""

import json
from typing import Any

import pytest
from tests.script_model import Script, called, said, script, shape, words_of
from tests.services.turn_fixture import TurnFixture, die, ended
from tests.services.turns.test_rejoined_turns import as_sent, numbered, rejoin
from tests.services.turns.test_shielded_turns import shielded
from tests.store.conftest import Cloud

from stint.domain.errors import Conflict, InvalidRequest
from stint.domain.llama_stack.agents import ToolShieldNames
from stint.domain.llama_stack.registrations import ShieldRegisterRequest
from stint.domain.llama_stack.turns import Turn
from stint.domain.messages import UserMessage
from stint.domain.tools import ToolResponseMessage

BAD, BLOCKED = "SECRET-7", "A shield blocked the result of this call. Not here."


async def with_shields(cloud: Cloud, tenant: str, model: Script, **names: list[str]) -> TurnFixture:
    """Return a session whose agent has the client tools `add` and `sub`, of which `add` has shields."""
    return await shielded(cloud, tenant, model, tools=("add", "sub"), tool_shields={"add": ToolShieldNames(**names)})


def shown(turn: Turn) -> str:
    return json.dumps(turn.model_dump(mode="json"))


def seen(model: Script) -> list[str]:
    return [words_of(message) for message in model.requests[-1].messages]


async def test_a_result_that_is_blocked_at_a_resume_is_replaced_and_replayed(cloud: Cloud, tenant: str) -> None:
    model = script(called("add", "sub"), said("Done."))
    turn_fixture = await with_shields(cloud, tenant, model, input_shields=["words"], output_shields=["words"])
    turn = await turn_fixture.start()
    first = await turn_fixture.play(turn)
    resumed = await turn_fixture.resume(turn.turn_id, ("c0", BAD), ("c1", BAD))
    second = await turn_fixture.play(resumed)

    assert shape(second)[:3] == ["complete tool_execution", "start shield_call", "complete shield_call"]
    assert as_sent(await rejoin(turn_fixture, turn.turn_id)) == numbered([*first, *second])
    [execution] = [step for step in ended(second).steps if step.step_type == "tool_execution"]
    assert [response.content for response in execution.tool_responses] == [BLOCKED, BAD]
    assert seen(model)[-2:] == [BLOCKED, BAD]
    assert await turn_fixture.get(turn.turn_id) == ended(second)


async def test_after_a_death_the_same_results_continue_the_turn_although_one_was_replaced(
    cloud: Cloud, tenant: str
) -> None:
    model = script(called("add"), said("lost"), said("Done."))
    turn_fixture = await with_shields(cloud, tenant, model, output_shields=["words"])
    turn = await turn_fixture.turn()
    await die(await turn_fixture.resume(turn.turn_id, ("c0", BAD)))
    await turn_fixture.expire_lease()

    again = await turn_fixture.resumed(turn.turn_id, ("c0", BAD))

    assert again.output_message.content == "Done."
    assert BAD not in shown(again)
    assert seen(model)[-1] == BLOCKED


async def test_after_a_death_other_results_are_refused(cloud: Cloud, tenant: str) -> None:
    turn_fixture = await with_shields(
        cloud, tenant, script(called("add", "sub"), said("lost")), output_shields=["words"]
    )
    turn = await turn_fixture.turn()
    await die(await turn_fixture.resume(turn.turn_id, ("c0", BAD), ("c1", "1")))
    await turn_fixture.expire_lease()

    with pytest.raises(Conflict):
        await turn_fixture.resume(turn.turn_id, ("c0", BAD), ("c1", "2"))


@pytest.mark.parametrize("call_id", ["c0", "", "unknown"])
async def test_a_result_in_the_next_turn_is_replaced_before_it_is_stored(
    cloud: Cloud, tenant: str, call_id: str
) -> None:
    model = script(called("add"), said("Done."), said("Again."))
    turn_fixture = await with_shields(cloud, tenant, model, output_shields=["words"])
    await turn_fixture.turn()
    message = ToolResponseMessage(call_id=call_id, content=BAD)

    turn = await turn_fixture.start(messages=[message, UserMessage(content="Well?")])
    events = await turn_fixture.play(turn)
    other = turn_fixture.other_process(model)
    await other.turn("And?")

    assert shape(events)[:4] == ["turn_start", "start shield_call", "complete shield_call", "start inference"]
    assert as_sent(await rejoin(turn_fixture, turn.turn_id)) == numbered(events)
    assert BAD not in "".join(shown(each) for each in await turn_fixture.stored()) + repr(model.requests)
    assert any(BLOCKED in text for text in seen(model))


async def test_a_blocked_call_of_the_client_never_waits(cloud: Cloud, tenant: str) -> None:
    model = script(called("add", arguments=json.dumps({"city": BAD})), said("Done."))
    turn_fixture = await with_shields(cloud, tenant, model, input_shields=["words"])
    turn = await turn_fixture.start()

    events = await turn_fixture.play(turn)

    assert ended(events).status.value == "completed"
    assert as_sent(await rejoin(turn_fixture, turn.turn_id)) == numbered(events)
    with pytest.raises(Conflict):
        await turn_fixture.resume(turn.turn_id, ("c0", "3"))


async def test_the_model_of_a_tools_shield_is_in_the_receipt(cloud: Cloud, tenant: str) -> None:
    model = script(called("add"), said("safe"), said("safe"), said("Done."))
    turn_fixture = await shielded(cloud, tenant, model)
    guard = ShieldRegisterRequest(shield_id="guard", provider_id="llama-guard", provider_shield_id="test/m")
    await turn_fixture.services.shields.register(guard)
    shields = {"add": ToolShieldNames(input_shields=["guard"], output_shields=["guard"])}
    await turn_fixture.open("add", tool_shields=shields)

    waiting = await turn_fixture.turn()
    turn = await turn_fixture.resumed(waiting.turn_id, ("c0", "3"))

    assert waiting.receipt is not None
    assert turn.receipt is not None
    assert (waiting.receipt.model_calls, turn.receipt.model_calls) == (2, 4)
    assert "add" in words_of(model.requests[1].messages[0])
    assert len(turn.steps) == 5


@pytest.mark.parametrize(
    ("shields", "says"),
    [
        ({"nope": {"input_shields": ["words"]}}, "tool_shields names the tool 'nope'"),
        ({"add": {"input_shields": ["nope"]}}, "Shield 'nope' is not registered"),
        ({"add": {"output_shields": ["words"] * 9}}, "tool_shields.add.output_shields has 9 shields"),
        ({"add": {"output_shields": [f"s{place}" for place in range(17)]}}, "17 different shields"),
    ],
)
async def test_shields_of_tools_that_cannot_be_used_refuse_the_turn(
    cloud: Cloud, tenant: str, shields: dict[str, Any], says: str
) -> None:
    turn_fixture = await shielded(cloud, tenant, script(said()))
    await turn_fixture.open("add", tool_shields=shields)

    with pytest.raises(InvalidRequest, match=says):
        await turn_fixture.start()


async def test_checks_of_tools_write_a_record_each_and_other_turns_none(cloud: Cloud, tenant: str) -> None:
    counts = []
    for names in ({}, {"input_shields": ["words"]}):
        turn_fixture = await with_shields(cloud, tenant, script(called("nosuch"), called("add")), **names)
        cloud.forget()
        await turn_fixture.turn()
        counts.append(cloud.units["PutItem"] + cloud.units["UpdateItem"])

    assert counts[1] - counts[0] == 1
