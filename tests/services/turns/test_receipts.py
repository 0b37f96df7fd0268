import json

import pytest
from tests.clock import CLOCK
from tests.script_model import Part, Script, called, said, script
from tests.services.conftest import MakeTurnFixture
from tests.services.turn_fixture import TurnFixture
from tests.store.conftest import Cloud

from stint.domain.errors import ModelError
from stint.domain.inference import Finished, FinishReason, TextChunk, Usage
from stint.domain.llama_stack.turns import Turn
from stint.domain.receipts import Receipt
from stint.request_totals import begin_totals

USED = Usage(input_tokens=100, output_tokens=20, total_tokens=120, cached_tokens=40, reasoning_tokens=5)
PRICES = json.dumps({"test/*": {"input": 2, "cached_input": 1, "output": 10}})


def answered(text: str = "Hi") -> list[Part]:
    return [TextChunk(text), Finished(FinishReason.stop, USED)]


def receipt_of(turn: Turn) -> Receipt:
    assert turn.receipt is not None
    return turn.receipt


def write_units(cloud: Cloud) -> float:
    return cloud.units["PutItem"] + cloud.units["UpdateItem"] + cloud.units["DeleteItem"]


def priced(cloud: Cloud, tenant: str, model: Script) -> TurnFixture:
    return TurnFixture(cloud.store, tenant, model, prices=PRICES, memory_mb=256)


async def test_the_receipt_of_a_turn_counts_its_tokens_calls_units_and_time(cloud: Cloud, tenant: str) -> None:
    turn_fixture = await priced(cloud, tenant, script(answered(), answered())).open()
    await turn_fixture.turn()
    cloud.forget()

    with CLOCK.stop():
        run = await turn_fixture.start()
        CLOCK.move(2)
        turn = (await turn_fixture.play(run))[-1].turn  # type: ignore[union-attr]  # the terminal event

    receipt = receipt_of(turn)
    assert (receipt.write_units, write_units(cloud)) == (4, 4)
    assert (receipt.read_units, cloud.units["GetItem"]) == (2, 1.5)  # the process reads its stops with BatchGetItem
    assert (receipt.model_calls, receipt.tool_calls, receipt.input_tokens, receipt.cached_tokens) == (1, 0, 100, 40)
    assert (receipt.output_tokens, receipt.reasoning_tokens) == (20, 5)
    assert (receipt.milliseconds, receipt.memory_mb) == (2000, 256)
    assert receipt.model_dollars == pytest.approx((60 * 2 + 40 * 1 + 20 * 10) / 1e6)
    infrastructure = (4 * 0.625 + 1.5 * 0.125 + 0.2) / 1e6 + 2 / 4 * 0.0000133334
    assert receipt.infrastructure_dollars == pytest.approx(infrastructure, abs=1e-9)
    assert receipt.dollars == pytest.approx((receipt.model_dollars or 0) + receipt.infrastructure_dollars)


async def test_the_receipt_is_stored_with_the_ending(cloud: Cloud, tenant: str) -> None:
    turn_fixture = await priced(cloud, tenant, script(answered())).open()

    turn = await turn_fixture.turn()

    assert (await turn_fixture.get(turn.turn_id)).receipt == turn.receipt
    assert [stored.receipt for stored in await turn_fixture.stored()] == [turn.receipt]


async def test_a_model_without_a_price_has_no_dollars(make_turn_fixture: MakeTurnFixture) -> None:
    turn_fixture = await make_turn_fixture(script(answered())).open()

    receipt = receipt_of(await turn_fixture.turn())

    assert (receipt.model_dollars, receipt.dollars) == (None, None)
    assert receipt.infrastructure_dollars > 0


async def test_the_units_of_a_long_answer_are_those_that_it_costs(cloud: Cloud, tenant: str) -> None:
    answers = [answered("".join(f"{number:x} " for number in range(5_000))), answered()]
    turn_fixture = await priced(cloud, tenant, script(*answers)).open()
    cloud.forget()

    turn = await turn_fixture.turn()

    assert receipt_of(turn).write_units == write_units(cloud) > 8


async def test_the_receipt_of_a_resumed_turn_has_both_parts(cloud: Cloud, tenant: str) -> None:
    turn_fixture = await priced(cloud, tenant, script(called("add"), answered())).open("add")
    cloud.forget()
    paused = await turn_fixture.turn()
    before = receipt_of(paused)
    assert before.write_units == write_units(cloud)

    turn = await turn_fixture.resumed(paused.turn_id, ("c0", "3"))

    receipt = receipt_of(turn)
    assert (before.model_calls, receipt.model_calls) == (1, 2)
    assert receipt.write_units == write_units(cloud)
    assert receipt.input_tokens == 100


async def test_a_failed_turn_has_a_receipt_of_its_finished_calls(cloud: Cloud, tenant: str) -> None:
    broken: list[Part] = [TextChunk("Hi"), ModelError("The model failed.")]
    turn_fixture = await priced(cloud, tenant, script(broken)).open()

    turn = await turn_fixture.turn()

    assert turn.status == "failed"
    assert (receipt_of(turn).model_calls, receipt_of(turn).write_units) == (1, 4)


async def test_a_cancelled_turn_keeps_the_receipt_of_its_pause(cloud: Cloud, tenant: str) -> None:
    turn_fixture = await priced(cloud, tenant, script(called("add"), said())).open("add")
    paused = await turn_fixture.turn()

    await turn_fixture.turn()

    assert (await turn_fixture.get(paused.turn_id)).receipt == paused.receipt


async def test_what_a_turn_costs_is_a_metric_of_its_request(cloud: Cloud, tenant: str) -> None:
    turn_fixture = await priced(cloud, tenant, script(answered())).open()
    totals = begin_totals()

    turn = await turn_fixture.turn()

    receipt = receipt_of(turn)
    assert totals.dollars == pytest.approx(receipt.dollars, rel=0.5)
    assert totals.dollars > (receipt.model_dollars or 0) > 0
