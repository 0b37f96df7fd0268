"""Costs of the calls of embedding models, also of those that fail."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from math import inf
from typing import Literal

import pytest

from stint.domain.errors import (
    ContextLengthExceeded,
    InvalidRequest,
    ModelError,
    ModelOverloaded,
    ModelUnauthorized,
    ModelUnreachable,
)
from stint.domain.prices import ModelPrice, Prices
from stint.metering import Meter, set_meter
from stint.retrieval.embedder_router import MeteredEmbedder
from stint.retrieval.port import Embeddings

TEXTS = ["x" * 400_000]
TOKENS, DOLLARS = 100_001, 1.00001
Answer = Callable[[], Awaitable[Embeddings]]


class Reserved:
    """A reservation that records what the call has spent."""

    dollars = DOLLARS
    most_dollars = 100.0
    most_tokens = inf

    def __init__(self) -> None:
        self.settled: list[tuple[int, float]] = []

    async def top_up(self, dollars: float) -> float:
        return dollars

    async def settle(self, tokens: int, dollars: float, _: float) -> None:
        self.settled.append((tokens, dollars))


class OneReservation:
    """Budgets that reserve whatever they are asked for."""

    limits_money = True

    def __init__(self) -> None:
        self.reserved = Reserved()

    async def admit(self, requests: int = 1, dollars: float = 0.0) -> None: ...

    async def admit_call(self, tokens: int, dollars: float, least_dollars: float, _: int) -> Reserved:
        return self.reserved

    async def close(self, dollars: float, *, started: bool) -> None: ...

    def to_headers(self) -> dict[str, str]:
        return {}


class AnsweringEmbedder:
    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.asked = asyncio.Event()

    def dimension(self, model_id: str) -> int | None:
        return 3

    async def embed(
        self,
        model_id: str,
        texts: Sequence[str],
        *,
        kind: Literal["document", "query"] = "document",
        dimensions: int | None = None,
    ) -> Embeddings:
        self.asked.set()
        return await self.answer()


@pytest.fixture
def meter() -> Iterator[Meter]:
    made = Meter(prices=Prices({"*": ModelPrice(input=10, output=10)}), spending=OneReservation())
    set_meter(made)
    yield made
    set_meter(None)


def settled_by(meter: Meter) -> list[tuple[int, float]]:
    assert isinstance(meter.spending, OneReservation)
    return meter.spending.reserved.settled


def failing(error: Exception) -> AnsweringEmbedder:
    async def fail() -> Embeddings:
        raise error

    return AnsweringEmbedder(fail)


async def wait_forever() -> Embeddings:
    await asyncio.Event().wait()
    raise AssertionError("nobody sets the event")


async def test_a_call_that_is_cancelled_while_it_runs_costs_what_was_reserved(meter: Meter) -> None:
    embedder = AnsweringEmbedder(wait_forever)
    call = asyncio.create_task(MeteredEmbedder(embedder, "openai").embed("m", TEXTS))
    await embedder.asked.wait()
    call.cancel()

    with pytest.raises(asyncio.CancelledError):
        await call

    assert settled_by(meter) == [(TOKENS, DOLLARS)]
    assert (meter.counted.input_tokens, meter.counted.model_dollars) == (TOKENS, DOLLARS)


@pytest.mark.parametrize("error", [ModelError("cut off"), ModelError("no JSON", upstream_status=200), OSError("reset")])
async def test_a_call_without_a_usable_answer_costs_what_was_reserved(meter: Meter, error: Exception) -> None:
    with pytest.raises(type(error)):
        await MeteredEmbedder(failing(error), "openai").embed("m", TEXTS)

    assert settled_by(meter) == [(TOKENS, DOLLARS)]


@pytest.mark.parametrize(
    "error",
    [
        InvalidRequest("no"),
        ContextLengthExceeded("long"),
        ModelUnauthorized("who"),
        ModelUnreachable("where"),
        ModelOverloaded("busy", upstream_status=503),
        ModelError("broken", upstream_status=500),
    ],
)
async def test_a_call_that_the_provider_refuses_or_never_gets_is_free(meter: Meter, error: Exception) -> None:
    with pytest.raises(type(error)):
        await MeteredEmbedder(failing(error), "openai").embed("m", TEXTS)

    assert settled_by(meter) == [(0, 0.0)]
    assert meter.counted.model_calls == 0
