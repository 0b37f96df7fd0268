"""Models whose calls are counted, and admitted by the budgets of the run that makes them.

Nobody knows what a call will cost, so it is paid for in three parts. Before it is sent, its input and a part of its
answer are reserved. While the answer streams, `AnswerMoney` tops the reservation up, and the answer ends when nothing
is left. At its end, the reservation is replaced by what the provider reports, if that can be true. A call without an
end costs what was reserved, or what was streamed if that is more, unless the provider charges nothing for it.
"""

import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING

from stint.dataclasses import replace
from stint.domain.errors import ContextLengthExceeded, InvalidRequest, ModelError, NotSupported, StintError
from stint.domain.inference import Accepted, Finished, FinishReason, InferenceRequest, ModelChunk, Usage
from stint.domain.prices import ModelPrice, is_free, tier_to_bill
from stint.domain.token_estimates import ANSWER_TOKENS, CHARACTERS_PER_TOKEN, believable, estimate_input, usage_of
from stint.metering import Meter, Reservation, find_meter
from stint.models.labels import find_labels
from stint.models.port import ChatModel, CountNeedsAnswer, characters_of, close_chunks
from stint.request_totals import count_model_error
from stint.run_stop import admit_model_call, refuse_stopped

if TYPE_CHECKING:
    from stint.models.answer_money import AnswerMoney

FIRST_TOKENS = 8_000
"""Most tokens of an answer that are paid for before it begins."""
COUNTING_TOKENS = 16
"""Longest answer that is requested for its usage: OpenAI's Responses API takes no lower limit."""
LIMIT_FIELDS = ("max_tokens", "max_completion_tokens", "max_output_tokens")

BEDROCK = "bedrock/"
MODEL_NOT_FOUND = "model_not_found"

Suggest = Callable[[str], str]
"""A function that returns a sentence with the id that is meant by an unknown one, or an empty text."""


class MeteredModel:
    """A model of a provider. Outside of a run, nothing is counted. `suggest` is the router's."""

    def __init__(self, model: ChatModel, provider: str, suggest: Suggest = lambda _: "") -> None:
        self.wrapped = model
        self._provider, self._suggest = provider, suggest

    def check(self, request: InferenceRequest) -> None:
        """Refuse parameters that the provider lacks; see the port."""
        try:
            self.wrapped.check(request)
        except InvalidRequest as error:
            self._explain(error, request)
            raise

    def _explain(self, error: InvalidRequest, request: InferenceRequest) -> None:
        """Add the id of another model to the error of an unknown one."""
        if error.code == MODEL_NOT_FOUND:
            error.add(self._suggest(f"{self._provider}/{request.model}"))

    async def count_tokens(self, request: InferenceRequest) -> int:
        """Count tokens, if necessary by a short answer, which costs as much as the messages; see the port.

        Raises NotSupported if the provider counts nothing.
        """
        try:
            return await self.wrapped.count_tokens(request)
        except CountNeedsAnswer:
            shortest = replace(request.decoding, max_tokens=COUNTING_TOKENS)
            return await self._count_by_answer(replace(request, decoding=shortest))

    async def _count_by_answer(self, request: InferenceRequest) -> int:
        usage = None
        async with aclosing(self.stream(request)) as chunks:
            async for chunk in chunks:
                if isinstance(chunk, Finished):
                    usage = chunk.usage
        if usage is None:
            raise NotSupported(
                f"The server of model {request.model!r} reports no usage, so its tokens cannot be counted."
            )
        return usage.input_tokens

    async def stream(self, request: InferenceRequest) -> AsyncGenerator[ModelChunk, None]:
        """Start a model call once the budgets of the run admit it; see the port.

        The answer ends with the reason `budget` when the money of the caller or the budget of the session does.
        """
        meter, request = find_meter(), replace(request, labels=find_labels())
        call = MeteredCall(meter, f"{self._provider}/{request.model}", request) if meter else None
        # Before the reservation: a run that was stopped must not reserve money first.
        await admit_model_call()
        if call:
            await call.admit()
        chunks, begun = self._open(call, request), False
        if request.times is not None:
            request.times.sent = time.monotonic()
        try:
            async for chunk in chunks:
                told = await call.follow(chunk) if call else chunk
                if not begun:
                    await refuse_stopped()
                    begun = True
                yield told
                if call and call.ended:
                    yield await call.end()
                    return
        except BaseException as error:
            if call:
                call.refused = isinstance(error, InvalidRequest) or is_free(error)
            if isinstance(error, ModelError):
                count_model_error(error)
            elif isinstance(error, InvalidRequest):
                self._explain(error, request)
            raise
        finally:
            if call:
                await call.close()
            await close_chunks(chunks)

    def _open(self, call: "MeteredCall | None", request: InferenceRequest) -> AsyncIterator[ModelChunk]:
        return self.wrapped.stream(request) if call is None or call.limit is None else self._open_limited(call)

    async def _open_limited(self, call: "MeteredCall") -> AsyncGenerator[ModelChunk, None]:
        """Yield the chunks of a call. One whose limit the model refuses is sent again without it."""
        while True:
            chunks, begun = self.wrapped.stream(call.limited_request), False
            try:
                async for chunk in chunks:
                    begun = True
                    yield chunk
            except StintError as error:
                if begun or not call.omit_limit(error):
                    raise
            else:
                return
            finally:
                await close_chunks(chunks)


class MeteredCall:
    """A model call of a run.

    `ended` is set once its money does not suffice for more of the answer. `limit` is the longest answer, in tokens,
    that the budgets allow; None if the request has a lower one, or if that is much. `refused`: the provider charges
    nothing. `dollars` are the call's price once it is settled, None if it is not known.
    """

    def __init__(self, meter: Meter, model_id: str, request: InferenceRequest) -> None:
        self.meter = meter
        self.model_id = model_id
        self.request = request
        self.begun = False
        self.refused = False
        self.streamed = 0
        self.settled = False
        self.ended = False
        self.limit: int | None = None
        self.reserved = Usage()
        self.reservation: Reservation | None = None
        self.price: ModelPrice | None = None
        self.money: AnswerMoney | None = None
        self.served: str | None = None
        self.dollars: float | None = None

    @property
    def tier(self) -> str:
        """Return the service tier whose price counts."""
        return tier_to_bill(self.request.service_tier, self.served)

    async def admit(self) -> None:
        """Reserve the estimated tokens of the call, and the price of its input and of a part of its answer.

        Raises:
            RateLimitExceeded, QuotaExceeded: a budget does not allow the call.
            Forbidden: the caller has a limit of money, and the model has no price.
        """
        spending = self.meter.spending
        if spending is None:
            return
        self.price = self.meter.require_price(self.model_id)
        price = self.price.in_tier(self.tier)
        longest = self.request.decoding.max_tokens or ANSWER_TOKENS
        self.reserved = self.as_kept(usage_of(self.tokens_in, min(longest, FIRST_TOKENS)))
        least = price.cost_of(usage_of(self.tokens_in, 1))
        self.reservation = await spending.admit_call(
            self.tokens_in + longest, price.cost_of(self.reserved), least, self.tokens_in + 1
        )
        if spending.limits_money and price.output > 0:
            from stint.models.answer_money import AnswerMoney  # noqa: PLC0415 - few callers have a limit of money

            self.money = AnswerMoney(self.reservation, price, price.cost_of(self.as_kept(usage_of(self.tokens_in, 0))))
            self.limit = self.money.lower_limit(self.request.decoding.max_tokens)
        if (left := self.reservation.most_tokens - self.tokens_in) < inf:
            from stint.models.answer_money import lower_limit  # noqa: PLC0415 - few sessions have a limit of tokens

            lower = lower_limit(left, self.limit or self.request.decoding.max_tokens)
            self.limit = self.limit if lower is None else lower

    @cached_property
    def tokens_in(self) -> int:
        """Return the estimate of the input."""
        return estimate_input(self.request)

    @property
    def limited_request(self) -> InferenceRequest:
        """Return the request with the longest answer that the budgets allow."""
        if self.limit is None:
            return self.request
        return replace(self.request, decoding=replace(self.request.decoding, max_tokens=self.limit))

    def omit_limit(self, error: StintError) -> bool:
        """Omit the limit if the provider refuses it, and return whether it did.

        A limit that is too large is more than the model's own, which then bounds the answer.
        """
        about_limit = isinstance(error, InvalidRequest) and error.param in LIMIT_FIELDS
        if self.limit is None or not (about_limit or isinstance(error, ContextLengthExceeded)):
            return False
        self.limit = None
        return True

    async def follow(self, chunk: ModelChunk) -> ModelChunk:
        """Count a chunk, and return it. The last one settles the call."""
        self.begun = self.begun or not isinstance(chunk, Accepted)
        if isinstance(chunk, Finished):
            return await self.finish(chunk)
        self.streamed += characters_of(chunk)
        if self.money is not None:
            self.ended = not await self.money.cover(chunk)
        return chunk

    async def finish(self, end: Finished) -> Finished:
        """Settle a call that has ended, and return its end as the run's caller sees it."""
        limit, self.served = self.limited_request.decoding.max_tokens, end.service_tier
        # A server that reports impossible numbers is not believed: they would use up a budget, or none of it.
        usage = end.usage and believable(
            end.usage, self.tokens_in, self.streamed, limit, messages=self.request.messages
        )
        await self.settle(usage or self.most_probable(), usage)
        # The caller's limit was higher than this one, so it is the budget that has ended the answer.
        cut = self.limit is not None and end.reason is FinishReason.length
        hides = self.meter.counted.hides_cache
        shown = usage.without_cache() if usage and hides else usage
        dollars = None if hides else self.dollars
        return Finished(FinishReason.budget if cut else end.reason, shown, end.service_tier, dollars)

    async def end(self) -> Finished:
        """Settle a call whose money is spent, and return the end of its answer."""
        counted = self.estimated()
        await self.settle(self.most_probable(), counted)
        return Finished(FinishReason.budget, counted, dollars=None if self.meter.counted.hides_cache else self.dollars)

    async def close(self) -> None:
        """Settle a call that did not finish. It costs nothing if the provider refused it, or never got it.

        Otherwise its budgets have spent what was reserved, or what was streamed if that is more, because the provider
        may have generated more than that, also before the first word.
        """
        if not self.settled:
            # A request that was sent may have been answered and charged, although nothing of the answer arrived.
            self.begun = self.begun or not self.refused
            await self.settle(self.most_probable() if self.begun else Usage(), self.estimated() if self.begun else None)

    def estimated(self) -> Usage:
        """Return the probable tokens of the answer so far."""
        return usage_of(self.tokens_in, self.streamed // CHARACTERS_PER_TOKEN + 1)

    def most_probable(self) -> Usage:
        """Return the estimate of the whole call, or that of the answer so far if it is more."""
        return max(self.as_kept(self.estimated()), self.reserved, key=lambda usage: usage.total_tokens)

    def as_kept(self, usage: Usage) -> Usage:
        """Return an estimate with the input that is written to a cache, if the call wants it and it has a price."""
        if self.request.cache is None or self.price is None:
            return usage

        return with_writes(usage, self.request, self.model_id, self.price)

    async def settle(self, spent: Usage, counted: Usage | None) -> None:
        self.settled = True
        if self.begun:
            self.meter.count_call(self.model_id, counted, self.tier)
            self.dollars = self.meter.calls[-1][2]
        try:
            if self.money is not None:
                await self.money.close()
        finally:
            if self.reservation is not None and self.price is not None:
                price, shown = self.price.in_tier(self.tier), spent
                if self.meter.counted.hides_cache:
                    shown = spent.without_cache()
                tokens = spent.input_tokens + spent.output_tokens
                await self.reservation.settle(tokens, price.cost_of(spent), price.cost_of(shown))


def with_writes(usage: Usage, request: InferenceRequest, model_id: str, price: ModelPrice) -> Usage:
    """Return an estimate whose input is written to the provider's cache, as it is at most, if the request wants that.

    Models of Bedrock charge for it. Those of other servers usually do not, so it counts for them only if there is a
    price of it. `model_id` has the provider.
    """
    cache, tokens = request.cache, usage.input_tokens
    if cache is None or not (cache.implicit or any(getattr(each, "breakpoints", ()) for each in request.messages)):
        return usage
    lasts = cache.lifetime == "1h"
    own_price = price.cache_write_1h if lasts else price.cache_write
    if own_price is None and not charges(model_id):
        return usage
    return usage.model_copy(update={"cache_write_tokens": tokens, "cache_write_1h_tokens": tokens if lasts else 0})


def charges(model_id: str) -> bool:
    """Return whether a model of Bedrock has a cache, for whose use the adapter asks."""
    if not model_id.startswith(BEDROCK):
        return False
    from stint.models.bedrock.cache_points import places_of  # noqa: PLC0415 - other providers do without Bedrock

    return bool(places_of(model_id.removeprefix(BEDROCK)))
