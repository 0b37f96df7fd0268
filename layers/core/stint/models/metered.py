"""Models whose calls are counted, and admitted by the budgets of the run that makes them."""

from collections.abc import AsyncGenerator

from stint.domain.content import text_of
from stint.domain.errors import ModelError
from stint.domain.inference import (
    Accepted,
    AssistantAnswer,
    Finished,
    InferenceRequest,
    ModelChunk,
    ModelMessage,
    SystemText,
    Usage,
)
from stint.metering import Meter, Reservation, count_model_error, find_meter
from stint.models.port import ChatModel, characters_of, close_chunks
from stint.run_stop import admit_model_call, refuse_stopped

CHARACTERS_PER_TOKEN = 4
ANSWER_TOKENS = 1_000
"""Tokens that are reserved for an answer whose length the request does not limit."""


class MeteredModel:
    """A model of a provider. Outside of a run, nothing is counted."""

    def __init__(self, model: ChatModel, provider: str) -> None:
        self._model = model
        self._provider = provider

    def check(self, request: InferenceRequest) -> None:
        """Refuse parameters that the provider lacks; see the port."""
        self._model.check(request)

    async def count_tokens(self, request: InferenceRequest) -> int:
        """Count tokens; see the port."""
        return await self._model.count_tokens(request)

    async def stream(self, request: InferenceRequest) -> AsyncGenerator[ModelChunk, None]:
        """Start a model call once the budgets of the run admit it; see the port."""
        meter = find_meter()
        call = meter and MeteredCall(meter, f"{self._provider}/{request.model}", request)
        await admit_model_call()
        if call:
            await call.admit()
        chunks, begun = self._model.stream(request), False
        try:
            async for chunk in chunks:
                if call:
                    await call.follow(chunk)
                if not begun:
                    await refuse_stopped()
                    begun = True
                yield chunk
        except ModelError as error:
            count_model_error(error)
            raise
        finally:
            if call:
                await call.close()
            await close_chunks(chunks)


class MeteredCall:
    """A model call of a run."""

    def __init__(self, meter: Meter, model_id: str, request: InferenceRequest) -> None:
        self.meter = meter
        self.model_id = model_id
        self.request = request
        self.begun = False
        self.streamed = 0
        self.settled = False
        self.reserved = Usage()
        self.reservation: Reservation | None = None

    async def admit(self) -> None:
        """Reserve the estimated tokens of the call, and their price."""
        if self.meter.spending is not None:
            self.reserved = estimate(self.request)
            tokens, dollars = self.reserved.total_tokens, self.price_of(self.reserved)
            self.reservation = await self.meter.spending.admit_call(tokens, dollars)

    async def follow(self, chunk: ModelChunk) -> None:
        """Count the call when it has finished."""
        self.begun = self.begun or not isinstance(chunk, Accepted)
        self.streamed += characters_of(chunk)
        if isinstance(chunk, Finished):
            await self.settle(chunk.usage or self.reserved, chunk.usage)

    async def close(self) -> None:
        """Settle a call that did not finish: by estimates if an answer had begun, otherwise by nothing.

        Its budgets have spent what was reserved, or what was streamed if that is more, because the provider may have
        generated more than that.
        """
        if self.settled:
            return
        if not self.begun:
            await self.settle(Usage(), None)
            return
        counted = estimate(self.request, self.streamed // CHARACTERS_PER_TOKEN + 1)
        await self.settle(max(counted, self.reserved, key=lambda usage: usage.total_tokens), counted)

    async def settle(self, spent: Usage, counted: Usage | None) -> None:
        self.settled = True
        if self.begun:
            self.meter.count_call(self.model_id, counted)
        if self.reservation is not None:
            await self.reservation.settle(spent.input_tokens + spent.output_tokens, self.price_of(spent))

    def price_of(self, usage: Usage) -> float:
        price = self.meter.prices.find(self.model_id)
        return price.cost_of(usage) if price else 0.0


def estimate(request: InferenceRequest, answer_tokens: int | None = None) -> Usage:
    """Return the tokens that a call will probably use: its texts, and by default the longest answer that it allows."""
    tokens_in = sum(map(length_of, request.messages)) // CHARACTERS_PER_TOKEN + 1
    tokens_out = answer_tokens or request.decoding.max_tokens or ANSWER_TOKENS
    return Usage(input_tokens=tokens_in, output_tokens=tokens_out, total_tokens=tokens_in + tokens_out)


def length_of(message: ModelMessage) -> int:
    """Return the characters of a message's text."""
    return len(message.text if isinstance(message, SystemText | AssistantAnswer) else text_of(message.content))
