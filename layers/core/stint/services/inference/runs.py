"""Model calls without an agent: one, or several that run concurrently.

Several answers are read by a task each, which put their deltas into one queue. So the deltas come in the order of time,
and a slow answer does not delay a fast one. The first error is raised by the reader of the queue; it then cancels all
tasks, which end their calls. Providers are checked for all calls before the first one starts, since a call that has
started costs money.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from stint.dataclasses import dataclass, field
from stint.domain.errors import DeadlineExceeded
from stint.domain.inference import InferenceRequest, TextChunk, TokenLogprob
from stint.domain.run_events import Delta, TextDelta, ToolCallDelta
from stint.loop.answer import Answer
from stint.loop.model_call import ANSWER_TIME_IS_OVER, Inference
from stint.models.port import ChatModel


@dataclass(frozen=True, slots=True)
class InferenceRun:
    """An answer whose model call has started. `deadline` is a time of the event loop's clock."""

    call: Inference
    deadline: float
    answer: Answer = field(default_factory=lambda: Answer(run_id=""))
    logprobs: list[TokenLogprob] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class LogprobDelta:
    """A delta of an answer, with the log probabilities of its tokens if the request asks for them."""

    delta: Delta
    logprobs: tuple[TokenLogprob, ...] = ()


def start_runs(model: ChatModel, calls: Sequence[InferenceRequest], deadline: float) -> list[InferenceRun]:
    """Start model calls. Raises InvalidRequest, and starts none, if the model's provider lacks a feature."""
    # All of them first: none starts if one is refused.
    for call in calls:
        model.check(call)
    return [InferenceRun(Inference(model, call), deadline) for call in calls]


async def read_deltas(run: InferenceRun) -> AsyncGenerator[LogprobDelta, None]:
    """Yield the deltas of an answer, except reasoning. At the end, `run` is complete.

    Raises:
        ModelError: the model failed.
        InvalidRequest: the model's provider refused the request.
        DeadlineExceeded: the deadline passed before the end.
    """
    try:
        async with aclosing(run.call.read(run.deadline)) as chunks:
            async for chunk in chunks:
                logprobs = chunk.logprobs if isinstance(chunk, TextChunk) else ()
                run.logprobs.extend(logprobs)
                for delta in run.answer.add_chunk(chunk):
                    if isinstance(delta, TextDelta | ToolCallDelta):
                        yield LogprobDelta(delta, logprobs)
    except DeadlineExceeded:
        raise DeadlineExceeded(ANSWER_TIME_IS_OVER) from None
    finally:
        await run.call.close()


async def read_answers(runs: Sequence[InferenceRun]) -> list[Answer]:
    """Read answers to their end, concurrently. The first error ends all. Raises as `read_deltas` does."""
    async with aclosing(merge_deltas(runs)) as deltas:
        async for _ in deltas:
            pass
    return [run.answer for run in runs]


async def merge_deltas(runs: Sequence[InferenceRun]) -> AsyncGenerator[tuple[int, LogprobDelta | None], None]:
    """Yield the deltas of several answers as they come, with the index of each, and None at its end.

    The first error ends all. Raises as `read_deltas` does.
    """
    # Unbounded: it has at most what the models write while the caller is slow to read.
    queue: asyncio.Queue[tuple[int, LogprobDelta | None] | Exception] = asyncio.Queue()

    async def read(index: int, run: InferenceRun) -> None:
        try:
            async with aclosing(read_deltas(run)) as deltas:
                async for delta in deltas:
                    queue.put_nowait((index, delta))
            queue.put_nowait((index, None))
        except Exception as error:  # noqa: BLE001 - it is raised below
            queue.put_nowait(error)

    tasks = [asyncio.create_task(read(index, run)) for index, run in enumerate(runs)]
    try:
        left = len(tasks)
        while left:
            event = await queue.get()
            if isinstance(event, Exception):
                raise event
            left -= event[1] is None
            yield event
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for run in runs:
            await run.call.close()
