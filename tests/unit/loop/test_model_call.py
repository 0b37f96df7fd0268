import asyncio
from collections.abc import Sequence
from contextlib import aclosing

import pytest
from tests.clock import CLOCK
from tests.script_model import Script, collect, deadline, said, script

from stint.domain.errors import DeadlineExceeded, ModelError, Stopped
from stint.domain.inference import InferenceRequest, TextChunk
from stint.domain.known_secrets import begin_request, remember
from stint.domain.redaction import Redactor
from stint.domain.stops import WHOLE_TENANT
from stint.loop.model_call import ChunkRedactor, Inference, with_deadline
from stint.run_stop import RunStop, set_run_stop


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
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_a_deadline_that_passes_between_two_reads_ends_the_next_one() -> None:
    inference = inference_of(script([TextChunk("a"), TextChunk("b"), asyncio.Event()]))

    with CLOCK.stop():
        chunks = inference.read(deadline(5))
        assert await anext(chunks) == TextChunk("a")
        CLOCK.move(5)
        for _ in range(3):
            await asyncio.sleep(0)

        with pytest.raises(DeadlineExceeded):
            await anext(chunks)
    await inference.close()


@pytest.mark.parametrize("place", [0, 1], ids=["first chunk", "a later one"])
async def test_a_reader_that_is_cancelled_is_not_late(place: int) -> None:
    inference = inference_of(script([*said()[:place], asyncio.Event()]))
    reading = asyncio.create_task(collect(inference.read(deadline(5))))
    for _ in range(5):
        await asyncio.sleep(0)

    reading.cancel()

    with pytest.raises(asyncio.CancelledError):
        await reading
    await inference.close()


async def test_a_later_read_ends_when_the_run_is_stopped() -> None:
    stop = RunStop({WHOLE_TENANT})
    set_run_stop(stop)
    inference = inference_of(script([TextChunk("a"), asyncio.Event()]))
    chunks = inference.read(deadline(30))
    assert await anext(chunks) == TextChunk("a")
    reading = asyncio.ensure_future(anext(chunks))
    await asyncio.sleep(0)

    stop.apply({WHOLE_TENANT})

    with pytest.raises(Stopped):
        await reading
    set_run_stop(None)
    await inference.close()


async def test_nothing_is_read_behind_the_end() -> None:
    inference = inference_of(script([*said(), ModelError("late")]))

    async with aclosing(inference.read(deadline(5))) as chunks:
        assert len(await collect(chunks)) == 2
    await inference.close()


async def test_a_time_out_of_what_is_awaited_is_not_the_deadline() -> None:
    async def give_up() -> None:
        raise TimeoutError("the provider's own")

    with pytest.raises(TimeoutError, match="own"):
        await with_deadline(deadline(5), give_up())


async def test_a_models_text_is_looked_through_only_where_the_request_has_credentials(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked: list[Redactor] = []

    class Noted(ChunkRedactor):
        def __init__(self, redactor: Redactor) -> None:
            looked.append(redactor)
            super().__init__(redactor)

    monkeypatch.setattr("stint.loop.model_call.ChunkRedactor", Noted)
    begin_request()
    remember(["key-of-the-server"], in_models_text=False)

    plain = await collect(inference_of(script(said("with abcdefgh"))).read(deadline(5)))
    assert looked == []
    remember(["abcdefgh"])
    redacted = await collect(inference_of(script(said("with abcdefgh"))).read(deadline(5)))
    begin_request()

    assert len(looked) == 1
    assert (text_of(plain), text_of(redacted)) == ("with abcdefgh", "with ***")


def text_of(chunks: Sequence[object]) -> str:
    return "".join(chunk.text for chunk in chunks if isinstance(chunk, TextChunk))
