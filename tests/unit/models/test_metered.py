from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from tests.script_model import Part, Script, collect, script

from stint.domain.errors import ContextLengthExceeded, ModelUnreachable, StintError
from stint.domain.inference import (
    Accepted,
    Decoding,
    Finished,
    FinishReason,
    InferenceRequest,
    ReasoningChunk,
    TextChunk,
    ToolCallChunk,
    Usage,
    UserInput,
)
from stint.domain.prices import ModelPrice, Prices
from stint.metering import Meter, begin_totals, set_meter
from stint.models.metered import ANSWER_TOKENS, MeteredModel

REQUEST = InferenceRequest("m", (UserInput("a" * 400),))
USED = Usage(input_tokens=90, output_tokens=10, total_tokens=100)
ANSWER: list[Part] = [Accepted(), TextChunk("Hi"), Finished(FinishReason.stop, USED)]


@dataclass
class Recorded:
    """Budgets that record what model calls reserve and spend."""

    calls: list[tuple[str, int, float]] = field(default_factory=list)
    refuses: bool = False

    async def admit(self, requests: int = 1) -> None:
        pass

    async def admit_call(self, tokens: int, dollars: float) -> "Recorded":
        if self.refuses:
            raise StintError("The budget is spent.")
        self.calls.append(("admit", tokens, dollars))
        return self

    async def settle(self, tokens: int, dollars: float) -> None:
        self.calls.append(("settle", tokens, dollars))

    async def close(self, dollars: float, *, started: bool) -> None:
        pass

    def to_headers(self) -> dict[str, str]:
        return {}


@pytest.fixture
def meter() -> Iterator[Meter]:
    """The meter of a run with budgets, in which a token costs a dollar."""
    price = ModelPrice(input=1_000_000, output=1_000_000)
    meter = Meter(Prices({"test/*": price}), spending=Recorded())
    set_meter(meter)
    yield meter
    set_meter(None)


def recorded(meter: Meter) -> Recorded:
    assert isinstance(meter.spending, Recorded)
    return meter.spending


def metered(model: Script) -> MeteredModel:
    return MeteredModel(model, "test")


async def test_a_call_reserves_its_estimate_and_settles_what_the_provider_counted(meter: Meter) -> None:
    chunks = await collect(metered(script(ANSWER)).stream(REQUEST))

    assert chunks == ANSWER
    reserved = 101 + ANSWER_TOKENS
    assert recorded(meter).calls == [("admit", reserved, reserved), ("settle", 100, 100)]
    assert (meter.counted.model_calls, meter.counted.input_tokens, meter.counted.model_dollars) == (1, 90, 100)


async def test_the_estimate_has_the_longest_answer_that_the_request_allows(meter: Meter) -> None:
    request = InferenceRequest("m", REQUEST.messages, decoding=Decoding(max_tokens=7))

    await collect(metered(script(ANSWER)).stream(request))

    assert recorded(meter).calls[0] == ("admit", 108, 108)


async def test_a_call_that_the_budgets_refuse_is_not_sent(meter: Meter) -> None:
    model = script(ANSWER)
    recorded(meter).refuses = True

    with pytest.raises(StintError, match="spent"):
        await collect(metered(model).stream(REQUEST))

    assert (model.requests, meter.counted.model_calls) == ([], 0)


async def test_a_call_that_the_provider_refuses_costs_nothing(meter: Meter) -> None:
    with pytest.raises(StintError, match="No"):
        await collect(metered(script([StintError("No")])).stream(REQUEST))

    assert recorded(meter).calls[1:] == [("settle", 0, 0)]
    assert meter.counted.model_calls == 0


async def test_an_answer_that_was_not_read_to_its_end_costs_its_estimate(meter: Meter) -> None:
    chunks = metered(script(ANSWER)).stream(REQUEST)
    await anext(chunks)
    await anext(chunks)

    await chunks.aclose()

    assert recorded(meter).calls[1][:2] == ("settle", 101 + ANSWER_TOKENS)
    assert (meter.counted.model_calls, meter.counted.output_tokens, meter.counted.model_dollars) == (1, 1, 102)


async def test_a_long_answer_that_was_not_read_to_its_end_costs_what_was_streamed(meter: Meter) -> None:
    pieces: list[Part] = [ReasoningChunk("a" * 4_000), TextChunk("b" * 4_000), ToolCallChunk(0, "c0", "f", "{" * 3_999)]
    chunks = metered(script([*pieces, *ANSWER])).stream(REQUEST)
    for _ in pieces:
        await anext(chunks)

    await chunks.aclose()

    assert recorded(meter).calls[1] == ("settle", 101 + 3_001, 101 + 3_001)
    assert (meter.counted.output_tokens, meter.counted.model_dollars) == (3_001, 101 + 3_001)


async def test_an_answer_that_breaks_off_leaves_the_price_of_earlier_calls(meter: Meter) -> None:
    model = metered(script(ANSWER, [TextChunk("Hi"), StintError("The line is dead.")]))
    await collect(model.stream(REQUEST))

    with pytest.raises(StintError, match="dead"):
        await collect(model.stream(REQUEST))

    assert (meter.counted.model_calls, meter.counted.model_dollars) == (2, 100 + 102)


async def test_outside_of_a_run_nothing_is_counted() -> None:
    assert await collect(metered(script(ANSWER)).stream(REQUEST)) == ANSWER


@pytest.mark.parametrize(("error", "counted"), [(ModelUnreachable("down"), 1), (ContextLengthExceeded("long"), 0)])
async def test_a_call_that_fails_is_counted_for_the_metrics_of_its_request(error: StintError, counted: int) -> None:
    totals = begin_totals()

    with pytest.raises(type(error)):
        await collect(metered(script([error])).stream(REQUEST))

    assert totals.model_errors == counted
