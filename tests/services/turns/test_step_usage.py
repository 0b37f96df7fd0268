"""Tokens and dollars of the model calls of a turn."""

import json

import pytest
from tests.script_model import STOP, Script, called
from tests.services.conftest import MakeTurnFixture
from tests.services.turn_fixture import TurnFixture
from tests.store.conftest import Cloud

from stint.domain.inference import Finished, FinishReason, TextChunk, Usage
from stint.domain.llama_stack.turns import Turn
from stint.domain.steps import InferenceStep, StepUsage

FIRST = Usage(input_tokens=1_000, output_tokens=20, total_tokens=1_020, cached_tokens=400)
SECOND = Usage(input_tokens=1_100, output_tokens=300, total_tokens=1_400, reasoning_tokens=120)
PRICES = json.dumps({"test/*": {"input": 2, "cached_input": 1, "output": 10}})


def two_calls() -> Script:
    """Return a model that calls a tool of the client, and then answers."""
    first = [*called("add")[:-1], Finished(FinishReason.tool_calls, FIRST)]
    return Script([first, [TextChunk("Hi"), Finished(FinishReason.stop, SECOND)]])


def usages(turn: Turn) -> list[StepUsage | None]:
    return [step.usage for step in turn.steps if isinstance(step, InferenceStep)]


async def test_each_model_call_has_its_tokens_and_dollars_which_add_up_to_the_receipt(
    cloud: Cloud, tenant: str
) -> None:
    turn_fixture = await TurnFixture(cloud.store, tenant, two_calls(), prices=PRICES).open("add")

    paused = await turn_fixture.turn()
    turn = await turn_fixture.resumed(paused.turn_id, ("c0", "3"))

    assert usages(paused) == usages(turn)[:1]
    assert usages(turn) == [
        StepUsage(input_tokens=1_000, cached_tokens=400, output_tokens=20, dollars=0.0018),
        StepUsage(input_tokens=1_100, output_tokens=300, reasoning_tokens=120, dollars=0.0052),
    ]
    assert turn.receipt is not None
    assert turn.receipt.model_dollars == pytest.approx(0.007)
    assert usages(await turn_fixture.get(turn.turn_id)) == usages(turn)


async def test_counts_of_zero_and_unknown_prices_are_omitted(make_turn_fixture: MakeTurnFixture) -> None:
    counted = Usage(input_tokens=100, output_tokens=20, total_tokens=120)
    turn_fixture = await make_turn_fixture(Script([[TextChunk("Hi"), Finished(FinishReason.stop, counted)]])).open()

    [step] = json.loads((await turn_fixture.turn()).to_json())["steps"]

    assert step["usage"] == {"input_tokens": 100, "output_tokens": 20}


async def test_a_provider_that_counts_nothing_leaves_the_usage_out(make_turn_fixture: MakeTurnFixture) -> None:
    turn_fixture = await make_turn_fixture(Script([[TextChunk("Hi"), STOP]])).open()

    [step] = json.loads((await turn_fixture.turn()).to_json())["steps"]

    assert "usage" not in step


async def test_dollars_are_hidden_where_the_use_of_the_cache_is(cloud: Cloud, tenant: str) -> None:
    hidden = TurnFixture(cloud.store, tenant, two_calls(), prices=PRICES, hide_cached_tokens=True)

    turn = await (await hidden.open("add")).turn()

    assert usages(turn) == [StepUsage(input_tokens=1_000, output_tokens=20)]
