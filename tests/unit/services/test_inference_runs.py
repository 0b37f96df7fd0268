"""Several model calls at once."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

import pytest

from stint.domain.errors import DeadlineExceeded, InvalidRequest, ModelError
from stint.domain.inference import Finished, FinishReason, InferenceRequest, ModelChunk, TextChunk
from stint.services.inference.runs import merge_deltas, read_answers, read_deltas, start_runs


class Scripts:
    """A model that answers `wait` never, `fail` with an error, and other ids with the id. It counts its open calls."""

    def __init__(self) -> None:
        self.open = 0
        self.started = 0
        self.waiting = asyncio.Semaphore(0)

    def check(self, request: InferenceRequest) -> None:
        if request.model == "refused":
            raise InvalidRequest("No.")

    async def count_tokens(self, request: InferenceRequest) -> int:
        return 0

    async def stream(self, request: InferenceRequest) -> AsyncGenerator[ModelChunk, None]:
        self.open += 1
        self.started += 1
        try:
            if request.model == "fail":
                raise ModelError("It failed.")
            yield TextChunk(request.model)
            if request.model == "wait":
                self.waiting.release()
                await asyncio.Event().wait()
            yield Finished(FinishReason.stop)
        finally:
            self.open -= 1


def calls(*models: str) -> list[InferenceRequest]:
    return [InferenceRequest(model, ()) for model in models]


def in_time(seconds: float) -> float:
    return asyncio.get_running_loop().time() + seconds


async def test_answers_are_in_the_order_of_their_calls() -> None:
    model = Scripts()

    answers = await read_answers(start_runs(model, calls("a", "b", "c"), in_time(60)))

    assert ["".join(answer.text) for answer in answers] == ["a", "b", "c"]
    assert model.open == 0


async def test_the_first_error_ends_all_calls() -> None:
    model = Scripts()

    with pytest.raises(ModelError):
        await read_answers(start_runs(model, calls("wait", "fail", "wait"), in_time(60)))

    assert (model.started, model.open) == (3, 0)


async def test_a_reader_that_stops_ends_all_calls() -> None:
    model = Scripts()

    async with aclosing(merge_deltas(start_runs(model, calls("wait", "wait"), in_time(60)))) as deltas:
        await anext(deltas)

    assert model.open == 0


async def test_a_reader_that_is_cancelled_ends_all_calls() -> None:
    model = Scripts()
    reading = asyncio.create_task(read_answers(start_runs(model, calls("wait", "wait"), in_time(60))))
    for _ in range(2):
        await model.waiting.acquire()

    reading.cancel()
    await asyncio.gather(reading, return_exceptions=True)

    assert model.open == 0


async def test_no_call_starts_if_one_is_refused() -> None:
    model = Scripts()

    with pytest.raises(InvalidRequest):
        start_runs(model, calls("a", "refused"), in_time(60))
    await asyncio.sleep(0)

    assert model.started == 0


async def test_the_deadline_ends_a_call() -> None:
    model = Scripts()
    [run] = start_runs(model, calls("wait"), in_time(0.05))

    with pytest.raises(DeadlineExceeded, match="before the answer ended"):
        async for _ in read_deltas(run):
            pass

    assert model.open == 0
