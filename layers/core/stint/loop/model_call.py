"""A running model call.

A call starts as soon as it is made, so that a provider is reached while the run's header is being stored. A run can be
refused with a status until its first event has left, so it waits a short time for one of:

    accepted     an `Accepted` chunk: the provider's status arrived, and the first word may be a minute away
    first        the first chunk of the answer, or the provider's refusal, which is raised
    neither      after ACCEPTANCE_SECONDS the stream begins, and a later refusal becomes an event in it

All readers get the chunks from `Inference.read`: their size is bounded, they can be stored and read again, and they do
not have the caller's credentials.

An answer has up to thousands of chunks, and a timeout around each read would cost more than the read, so `ReadLimit`
has one timer for all. When it expires, it cancels the task that reads, as
`asyncio.timeout` does, and takes the cancellation back: a cancellation from outside that arrives in the same moment
stays one. A stop of the run expires the same timer early.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from stint.dataclasses import dataclass, field, replace
from stint.domain.errors import DeadlineExceeded, ModelError
from stint.domain.inference import (
    Accepted,
    CallTimes,
    Finished,
    InferenceRequest,
    ModelChunk,
    ReasoningChunk,
    RefusalChunk,
    TextChunk,
    ToolCallChunk,
)
from stint.domain.known_secrets import redactor_of_models_text
from stint.domain.limits import MAX_ANSWER_CALLS, MAX_ANSWER_CHARACTERS
from stint.domain.redaction import Redactor, StreamRedactor
from stint.models.port import ChatModel, characters_of, close_chunks, storable_chunk, words_of
from stint.run_stop import expiring_on_stop, raise_if_stopped

T = TypeVar("T")

TIME_IS_OVER = (
    "The time limit of this request was reached before the turn ended. Finished steps are stored. "
    "Request less in one turn, or raise StreamTimeoutSeconds in the template."
)
ANSWER_TIME_IS_OVER = (
    "The time limit of this request was reached before the answer ended. Request less, or raise StreamTimeoutSeconds "
    "in the template."
)
"""The same for a call without an agent, which stores no steps."""


@dataclass(slots=True)
class AnswerLimits:
    """The size of an answer so far."""

    characters: int = 0
    calls: set[int] = field(default_factory=set)

    def admit(self, chunk: ModelChunk) -> ModelChunk:
        """Count a chunk, and return it in a storable form. Raises ModelError if the answer is too large."""
        self.characters += characters_of(chunk)
        if self.characters > MAX_ANSWER_CHARACTERS:
            raise ModelError(
                f"The model's answer has more than {MAX_ANSWER_CHARACTERS:,} characters, the maximum. Limit its tokens."
            )
        if isinstance(chunk, ToolCallChunk):
            self.calls.add(chunk.index)
            if len(self.calls) > MAX_ANSWER_CALLS:
                raise ModelError(f"The model's answer has more than {MAX_ANSWER_CALLS:,} tool calls, the maximum.")
        return storable_chunk(chunk)


Written = TextChunk | RefusalChunk | ReasoningChunk


class ChunkRedactor:
    """Redacts a model's text, refusal and reasoning. Calls are unchanged. Log probabilities are omitted, because their
    tokens are the text.

    Changed reasoning loses its signature, which would no longer be valid. Late signatures refer to places in the whole
    answer, so they leave at its end, and only if nothing was changed.
    """

    def __init__(self, redactor: Redactor) -> None:
        self._stream = StreamRedactor(redactor)
        self._kind: type[Written] | None = None
        self._changed = self._found = False
        self._late: list[ReasoningChunk] = []

    def redact_chunk(self, chunk: ModelChunk) -> Iterator[ModelChunk]:
        """Yield the chunks that can leave after a chunk."""
        if isinstance(chunk, ReasoningChunk) and chunk.late:
            self._late.append(chunk)
            return
        if not isinstance(chunk, Written):
            yield from self.flush()
            if isinstance(chunk, Finished) and not self._found:
                yield from self._late
            yield chunk
            return
        if type(chunk) is not self._kind:
            yield from self.flush()
            self._kind = type(chunk)
        text = self._stream.feed(chunk.text)
        self._changed = self._changed or self._stream.found
        self._found = self._found or self._changed
        if isinstance(chunk, ReasoningChunk) and (chunk.signature or chunk.redacted):
            text += self._stream.flush()
            yield replace(chunk, text=text, signature="" if self._changed else chunk.signature)
        elif text:
            yield TextChunk(text) if isinstance(chunk, TextChunk) else replace(chunk, text=text)

    def flush(self) -> Iterator[ModelChunk]:
        """Yield the buffered rest."""
        rest = self._stream.flush()
        if rest and self._kind is not None:
            yield self._kind(text=rest)
        self._kind, self._changed = None, False


class Inference:
    """A model call that starts at once, so that it is opened while other work continues."""

    def __init__(self, model: ChatModel, request: InferenceRequest) -> None:
        self.times = CallTimes(time.monotonic())
        self.chunks = model.stream(replace(request, times=self.times))
        self.limits = AnswerLimits()
        self.accepted: asyncio.Future[ModelChunk | None] = asyncio.get_running_loop().create_future()
        self.first: asyncio.Task[ModelChunk | None] = asyncio.create_task(self.read_first())

    async def read_first(self) -> ModelChunk | None:
        chunk = await self.read_one()
        if isinstance(chunk, Accepted):
            self.accepted.set_result(chunk)
            chunk = await self.read_one()
        return chunk

    async def read_one(self) -> ModelChunk | None:
        chunk = await anext(self.chunks, None)
        if chunk is not None and words_of(chunk):
            # Here, because the chunk may have to wait for the run's header before it is read.
            self.times.first_token = time.monotonic()
        return chunk

    async def wait_until_accepted(self, seconds: float) -> None:
        """Wait until the provider accepts the request, `seconds` at most. Raises the provider's refusal."""
        await asyncio.wait({self.first, self.accepted}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        # After the acceptance, an error of the first chunk belongs to the stream: `read` raises it.
        if self.first.done() and not self.accepted.done():
            self.first.result()

    async def read(self, deadline: float) -> AsyncGenerator[ModelChunk, None]:
        """Yield the chunks in a storable form, without the caller's credentials. The last one is `Finished`.

        `deadline` is a time of the event loop's clock.

        Raises:
            ModelError: the model failed, or its answer is too large or has no end.
            DeadlineExceeded: the deadline passed first.
            Stopped: an admin stopped the run.
        """
        chunk = await with_deadline(deadline, self.first)
        redactor = redactor_of_models_text()
        redacted = ChunkRedactor(redactor) if redactor else None
        limit = ReadLimit(deadline)
        with limit.timed():
            while chunk is not None:
                if self.times.first_token is None and words_of(chunk):
                    self.times.first_token = time.monotonic()
                chunk = self.limits.admit(chunk)
                for each in redacted.redact_chunk(chunk) if redacted else (chunk,):
                    yield each
                if isinstance(chunk, Finished):
                    return
                chunk = await limit.read(self.chunks)
        # A connection that was cut looks like an end. Without `Finished`, a part would be stored as the whole answer.
        raise ModelError("The model's answer is incomplete: its end is missing.")

    async def close(self) -> None:
        """End the call, whether or not all of it was read."""
        if self.first.cancel():  # it still runs
            await asyncio.gather(self.first, return_exceptions=True)
        elif not self.first.cancelled():
            self.first.exception()  # asyncio logs an exception that nobody has taken
        await close_chunks(self.chunks)


class ReadLimit:
    """The deadline of many reads, one after the other, which end early when the run is stopped.

    All have one timer: a timeout for each would cost more than the read of a chunk.
    """

    def __init__(self, deadline: float) -> None:
        self.deadline = deadline
        self.loop = asyncio.get_running_loop()
        self.timer = self.loop.call_at(deadline, self.expire)
        self.reader: asyncio.Task[Any] | None = None
        self.ends_read = False

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Limit the reads of the body."""
        try:
            with expiring_on_stop(self):
                yield
        finally:
            self.timer.cancel()

    async def read(self, chunks: AsyncIterator[T]) -> T | None:
        """Return the next chunk; None at the end.

        Raises:
            DeadlineExceeded: the deadline passed first.
            Stopped: an admin stopped the run.
        """
        raise_if_stopped()
        if self.loop.time() >= self.deadline:  # the timer alone ends no read of a chunk that is already available
            raise DeadlineExceeded(TIME_IS_OVER)
        self.reader = reader = running_task()
        others, overdue = reader.cancelling(), False
        try:
            try:
                return await anext(chunks, None)
            finally:
                self.reader = None
                # Another cancellation in the same moment keeps the count above `others`, and is raised as it is.
                overdue = self.ends_read and reader.uncancel() <= others
        except (asyncio.CancelledError, TimeoutError):
            # A timeout inside the provider's code can turn the timer's cancellation into TimeoutError.
            if not overdue:
                raise
        raise_if_stopped()
        raise DeadlineExceeded(TIME_IS_OVER)

    def expire(self) -> None:
        """End the read that waits, if there is one."""
        if self.reader is not None and not self.ends_read:
            self.ends_read = True
            self.reader.cancel()

    def expired(self) -> bool:
        return self.ends_read

    def reschedule(self, when: float) -> None:
        self.timer.cancel()
        self.timer = self.loop.call_at(when, self.expire)


def running_task() -> "asyncio.Task[Any]":
    task = asyncio.current_task()
    if task is None:
        raise RuntimeError("A model's answer is read outside of a task.")
    return task


async def with_deadline(deadline: float, awaitable: Awaitable[T]) -> T:
    """Await something until a time of the event loop's clock.

    Raises:
        DeadlineExceeded: the deadline passed first.
        Stopped: an admin stopped the run.
    """
    limit = asyncio.timeout_at(deadline)
    try:
        async with limit:
            with expiring_on_stop(limit):
                return await awaitable
    except TimeoutError:
        if not limit.expired():  # a timeout inside the awaited object
            raise
        raise_if_stopped()
        raise DeadlineExceeded(TIME_IS_OVER) from None
