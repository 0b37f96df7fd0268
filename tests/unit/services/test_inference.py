import asyncio
from contextlib import aclosing

import pytest
from tests.unit.services.stage import Script, collect, deadline, said, script

from stint.domain.errors import DeadlineExceeded, ModelError
from stint.domain.inference import InferenceRequest
from stint.services.inference import Inference, before


def inference_of(model: Script) -> Inference:
    return Inference(model, InferenceRequest(model="m", messages=()))


async def test_the_call_begins_before_anybody_reads() -> None:
    model = script(said())

    inference = inference_of(model)

    await asyncio.wait_for(model.opened.wait(), 30)
    assert len(await collect(inference.read(deadline(5)))) == 2


async def test_a_call_that_nobody_reads_is_closed() -> None:
    model = script([asyncio.Event()])
    inference = inference_of(model)
    await model.opened.wait()

    await inference.close()

    assert model.closed == 1


async def test_an_unread_failure_is_no_matter() -> None:
    inference = inference_of(script([ModelError("no")]))
    await asyncio.sleep(0)

    await inference.close()


@pytest.mark.parametrize("place", [0, 1], ids=["first chunk", "a later one"])
async def test_the_deadline_ends_a_silent_model(place: int) -> None:
    model = script([*said()[:place], asyncio.Event()])
    inference = inference_of(model)

    with pytest.raises(DeadlineExceeded):
        await collect(inference.read(deadline(0.05)))

    await inference.close()
    assert model.closed == 1


async def test_nothing_is_read_behind_the_end() -> None:
    inference = inference_of(script([*said(), ModelError("late")]))

    async with aclosing(inference.read(deadline(5))) as chunks:
        assert len(await collect(chunks)) == 2
    await inference.close()


async def test_a_time_out_of_what_is_awaited_is_not_the_deadline() -> None:
    async def give_up() -> None:
        raise TimeoutError("the provider's own")

    with pytest.raises(TimeoutError, match="own"):
        await before(deadline(5), give_up())
