import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from math import inf

import pytest
from tests.script_model import Part, Script, collect, script

from stint.caller import set_principal
from stint.domain.errors import (
    ContextLengthExceeded,
    Forbidden,
    InvalidRequest,
    ModelError,
    ModelUnauthorized,
    ModelUnreachable,
    NotSupported,
    RateLimited,
    StintError,
)
from stint.domain.inference import (
    Accepted,
    AssistantAnswer,
    CacheLifetime,
    Decoding,
    Finished,
    FinishReason,
    InferenceRequest,
    JsonSchemaResponseFormat,
    PromptCache,
    Reasoning,
    ReasoningChunk,
    SystemText,
    TextChunk,
    ToolCallChunk,
    ToolResult,
    ToolSignature,
    Usage,
    UserInput,
)
from stint.domain.prices import ModelPrice, Prices
from stint.domain.principals import Principal
from stint.domain.token_estimates import ANSWER_TOKENS
from stint.domain.tools import ToolCall
from stint.metering import Meter, set_meter
from stint.models.metered import MeteredModel
from stint.models.port import CountNeedsAnswer
from stint.request_totals import begin_totals

REQUEST = InferenceRequest("m", (UserInput("a" * 400),))
USED = Usage(input_tokens=90, output_tokens=10, total_tokens=100)
ANSWER: list[Part] = [Accepted(), TextChunk("Hi"), Finished(FinishReason.stop, USED)]
PRICED = [*ANSWER[:2], Finished(FinishReason.stop, USED, dollars=100)]
"""The same answer, in which a token costs a dollar."""


@dataclass
class Recorded:
    """Budgets of `money` dollars that record what model calls reserve and spend."""

    calls: list[tuple[str, int, float]] = field(default_factory=list)
    money: float = 1_000_000
    refuses: bool = False
    limits_money: bool = True
    dollars: float = 0.0
    most_tokens: float = inf
    least: list[float] = field(default_factory=list)
    written: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.written.set()

    @property
    def most_dollars(self) -> float:
        return self.dollars + self.money if self.limits_money else inf

    async def admit(self, requests: int = 1, dollars: float = 0.0) -> None:
        pass

    async def admit_call(self, tokens: int, dollars: float, least_dollars: float, _: int) -> "Recorded":
        if self.refuses:
            raise StintError("The budget is spent.")
        self.calls.append(("admit", tokens, dollars))
        self.least.append(least_dollars)
        self.dollars = min(dollars, self.money)
        self.money -= self.dollars
        return self

    async def top_up(self, dollars: float) -> float:
        self.calls.append(("top up", 0, dollars))
        await self.written.wait()
        found = min(dollars, self.money)
        self.money -= found
        return found

    async def settle(self, tokens: int, dollars: float, _: float) -> None:
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

    assert chunks == PRICED
    reserved = 101 + ANSWER_TOKENS
    assert recorded(meter).calls == [("admit", reserved, reserved), ("settle", 100, 100)]
    assert (meter.counted.model_calls, meter.counted.input_tokens, meter.counted.model_dollars) == (1, 90, 100)


async def test_a_hidden_cache_is_counted_and_settled_at_its_price_and_not_shown(meter: Meter) -> None:
    price = ModelPrice(input=1_000_000, cached_input=0, output=1_000_000)
    meter.prices = Prices({"test/*": price})
    meter.counted.hides_cache = True
    used = Usage(input_tokens=90, output_tokens=10, total_tokens=100, cached_tokens=80)

    *_, end = await collect(metered(script([TextChunk("Hi"), Finished(FinishReason.stop, used)])).stream(REQUEST))

    assert end == Finished(FinishReason.stop, used.without_cache())
    assert recorded(meter).calls[-1] == ("settle", 100, 20)
    assert (meter.counted.cached_tokens, meter.counted.model_dollars) == (80, 20)


@pytest.mark.parametrize(
    ("asked", "served", "reserved", "spent"),
    [
        (None, "default", 1, 1),
        ("flex", "flex", 1, 0.5),
        ("flex", None, 1, 1),
        ("priority", "priority", 2.5, 2.5),
        ("priority", "default", 2.5, 1),
        ("priority", None, 2.5, 2.5),
        (None, "priority", 1, 2.5),
    ],
)
async def test_money_is_reserved_by_requested_and_spent_by_serving_tier(
    meter: Meter, asked: str | None, served: str | None, reserved: float, spent: float
) -> None:
    end = Finished(FinishReason.stop, USED, served)

    chunks = await collect(metered(script([Accepted(), end])).stream(replace(REQUEST, service_tier=asked)))

    assert chunks[-1] == replace(end, dollars=100 * spent)
    tokens = 101 + ANSWER_TOKENS
    assert recorded(meter).calls == [("admit", tokens, tokens * reserved), ("settle", 100, 100 * spent)]
    assert meter.counted.model_dollars == 100 * spent


@pytest.mark.parametrize(
    ("model", "lifetime", "ratio"),
    [
        ("anthropic.claude-sonnet-4-5-20250929-v1:0", "5m", 1.25),
        ("eu.anthropic.claude-sonnet-4-5-20250929-v1:0", "1h", 2),
        ("amazon.nova-pro-v1:0", "5m", 1.25),
        ("meta.llama3-70b-instruct-v1:0", "5m", 1),
        ("anthropic.claude-sonnet-4-5-20250929-v1:0", None, 1),
    ],
)
async def test_money_is_reserved_for_input_that_bedrock_writes_to_its_cache(
    meter: Meter, model: str, lifetime: CacheLifetime | None, ratio: float
) -> None:
    meter.prices = Prices({"bedrock/*": ModelPrice(input=1_000_000, output=1_000_000)})
    cache = PromptCache(lifetime) if lifetime else None
    asked = replace(REQUEST, model=model, cache=cache, decoding=Decoding(max_tokens=7))

    with pytest.raises(ModelError):
        await collect(MeteredModel(script([Accepted(), ModelError("It stalled.")]), "bedrock").stream(asked))

    dollars = 101 * ratio + 7
    assert recorded(meter).calls == [("admit", 108, dollars), ("settle", 108, dollars)]


@pytest.mark.parametrize(
    ("prices", "lifetime", "input_dollars"),
    [
        ({}, "5m", 101),
        ({"cache_write": 3_000_000}, "5m", 303),
        ({"cache_write": 3_000_000}, "1h", 101),
        ({"cache_write_1h": 4_000_000}, "1h", 404),
    ],
)
async def test_other_servers_charge_for_written_input_if_it_has_a_price(
    meter: Meter, prices: dict[str, float], lifetime: CacheLifetime, input_dollars: float
) -> None:
    meter.prices = Prices({"test/*": ModelPrice(input=1_000_000, output=1_000_000, **prices)})

    await collect(metered(script(ANSWER)).stream(replace(REQUEST, cache=PromptCache(lifetime))))

    assert recorded(meter).calls[0][2] == input_dollars + ANSWER_TOKENS


async def test_a_cache_without_places_to_keep_reserves_nothing_more(meter: Meter) -> None:
    meter.prices = Prices({"test/*": ModelPrice(input=1_000_000, cache_write=3_000_000, output=1_000_000)})
    explicit = replace(REQUEST, cache=PromptCache(implicit=False))
    marked = replace(explicit, messages=(UserInput("a" * 400, breakpoints=(0,)),))

    for asked in (explicit, marked):
        await collect(metered(script(ANSWER)).stream(asked))

    admitted = [dollars for name, _, dollars in recorded(meter).calls if name == "admit"]
    assert admitted == [101 + ANSWER_TOKENS, 303 + ANSWER_TOKENS]


async def test_written_input_leaves_less_for_the_answer(
    meter: Meter,
) -> None:
    """It refuses nobody who can pay the plain price."""
    meter.prices = Prices({"test/*": ModelPrice(input=1_000_000, cache_write=3_000_000, output=1_000_000)})
    recorded(meter).money = 303 + 700
    model = script(ANSWER, ANSWER)
    asked = replace(REQUEST, cache=PromptCache())

    await collect(metered(model).stream(asked))
    recorded(meter).money = 102
    await collect(metered(model).stream(asked))

    assert [request.decoding.max_tokens for request in model.requests] == [700, 16]
    assert recorded(meter).least == [102, 102]


async def test_a_call_is_labelled_in_the_name_of_its_run(meter: Meter) -> None:
    model = script(ANSWER, ANSWER)
    set_principal(Principal("acme", "ann", frozenset({"use"}), "k1"))
    meter.agent_id, meter.user_hash = "agent", "hash"

    await collect(metered(model).stream(REQUEST))
    set_principal(None)
    await collect(metered(model).stream(REQUEST))

    named = (("tenant", "acme"), ("key_id", "k1"), ("agent_id", "agent"), ("user_hash", "hash"))
    assert [request.labels for request in model.requests] == [named, ()]


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


@pytest.mark.parametrize(
    "error",
    [
        InvalidRequest("No"),
        ModelUnauthorized("No"),
        ModelUnreachable("No"),
        RateLimited("No", upstream_status=429),
        ContextLengthExceeded("No", upstream_status=400),
        ModelError("No", upstream_status=500),
    ],
)
@pytest.mark.parametrize("accepted", [[], [Accepted()]])
async def test_a_call_that_the_provider_refuses_or_never_gets_costs_nothing(
    meter: Meter, accepted: list[Part], error: StintError
) -> None:
    with pytest.raises(StintError, match="No"):
        await collect(metered(script([*accepted, error])).stream(REQUEST))

    assert recorded(meter).calls[1:] == [("settle", 0, 0)]
    assert meter.counted.model_calls == 0


@pytest.mark.parametrize("accepted", [[], [Accepted()]])
async def test_a_call_that_its_caller_leaves_before_the_first_word_costs_its_estimate(
    meter: Meter, accepted: list[Part]
) -> None:
    model = script([*accepted, asyncio.Event()])
    reading = asyncio.create_task(collect(metered(model).stream(REQUEST)))
    await model.opened.wait()

    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading

    assert recorded(meter).calls[-1] == ("settle", 101 + ANSWER_TOKENS, 101 + ANSWER_TOKENS)
    assert (meter.counted.model_calls, meter.counted.input_tokens) == (1, 101)


async def test_a_silent_model_that_times_out_costs_its_estimate(meter: Meter) -> None:
    with pytest.raises(ModelError):
        await collect(metered(script([Accepted(), ModelError("It stalled.")])).stream(REQUEST))

    assert recorded(meter).calls[-1] == ("settle", 101 + ANSWER_TOKENS, 101 + ANSWER_TOKENS)


TEXT = "a" * 400


@pytest.mark.parametrize(
    "asked",
    [
        InferenceRequest("m", (), tools=(ToolSignature("f", TEXT, {}),)),
        InferenceRequest("m", (), tools=(ToolSignature("f", "", {"description": TEXT}),)),
        InferenceRequest("m", (), response_format=JsonSchemaResponseFormat(json_schema={"description": TEXT})),
        InferenceRequest("m", (AssistantAnswer(TEXT),)),
        InferenceRequest("m", (AssistantAnswer("", reasoning=Reasoning(text=TEXT)),)),
        InferenceRequest("m", (AssistantAnswer("", reasoning=Reasoning(signature=TEXT)),)),
        InferenceRequest("m", (AssistantAnswer("", reasoning=Reasoning(redacted=TEXT)),)),
        InferenceRequest(
            "m",
            (
                AssistantAnswer(
                    "", (ToolCall(call_id="c", tool_name="f", arguments={}, arguments_json=json.dumps({"a": TEXT})),)
                ),
            ),
        ),
        InferenceRequest("m", (ToolResult("c", "f", TEXT),)),
        InferenceRequest("m", (SystemText(TEXT),)),
    ],
)
async def test_whatever_a_model_reads_is_reserved(meter: Meter, asked: InferenceRequest) -> None:
    await collect(metered(script(ANSWER)).stream(asked))

    assert recorded(meter).calls[0][1] >= 101 + ANSWER_TOKENS


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

    assert recorded(meter).calls[-1] == ("settle", 101 + 3_001, 101 + 3_001)
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


def words(count: int) -> list[Part]:
    """Return an answer of so many tokens, without its end."""
    return [TextChunk("word") for _ in range(count)]


def ended(output: int) -> Finished:
    return Finished(FinishReason.stop, Usage(input_tokens=101, output_tokens=output, total_tokens=101 + output))


def top_ups(meter: Meter) -> list[float]:
    return [dollars for name, _, dollars in recorded(meter).calls if name == "top up"]


async def test_the_money_of_a_long_answer_is_topped_up_by_doubling_amounts_while_it_streams(meter: Meter) -> None:
    answer = [*words(30_000), ended(30_000)]

    chunks = await collect(metered(script(answer)).stream(REQUEST))

    assert len(chunks) == 30_001
    assert top_ups(meter) == [1_000, 2_000, 4_000, 8_000, 8_000, 8_000]
    assert recorded(meter).calls[-1] == ("settle", 30_101, 30_101)


async def test_an_answer_within_its_first_reservation_is_not_topped_up(meter: Meter) -> None:
    await collect(metered(script([*words(1_000), ended(1_000)])).stream(REQUEST))

    assert top_ups(meter) == []


async def test_an_answer_ends_when_its_money_does(meter: Meter) -> None:
    recorded(meter).money = 101 + 2_500
    model = script([*words(9_000), ended(9_000)])

    chunks = await collect(metered(model).stream(REQUEST))

    assert chunks[-1].reason is FinishReason.budget
    assert chunks[-1].usage.output_tokens == len(chunks)
    assert 2_500 < len(chunks) <= 2_500 + 4_000 // 4 + 2
    assert model.closed == 1
    assert recorded(meter).calls[-1] == ("settle", 101 + len(chunks), 101 + len(chunks))


async def test_a_stream_goes_on_while_a_top_up_is_written_but_not_for_long(meter: Meter) -> None:
    recorded(meter).written.clear()
    seen: list[object] = []
    reading = asyncio.create_task(collect(metered(script([*words(3_000), ended(3_000)])).stream(REQUEST), seen))
    for _ in range(10):
        await asyncio.sleep(0)

    assert len(seen) == 1_250
    recorded(meter).written.set()
    assert len(await reading) == 3_001


@pytest.mark.parametrize("text", ["你" * 4_000, "é" * 6_000, "a" * 12_000, "x"])
async def test_text_of_every_script_is_paid_for(meter: Meter, text: str) -> None:
    pieces: list[Part] = [TextChunk(text)] if len(text) > 1 else [TextChunk("x")] * 3_000

    await collect(metered(script([*pieces, ended(3_000)])).stream(REQUEST))

    assert sum(top_ups(meter)) >= 2_000


async def test_a_provider_gets_what_is_left_as_its_limit_and_reaching_it_is_an_end_by_budget(meter: Meter) -> None:
    recorded(meter).money = 101 + 700
    model = script([*words(700), Finished(FinishReason.length, Usage(output_tokens=700))])

    chunks = await collect(metered(model).stream(REQUEST))

    assert model.requests[0].decoding.max_tokens == 700
    assert chunks[-1].reason is FinishReason.budget


@pytest.mark.parametrize(("asked", "sent"), [(500, 500), (900, 700), (None, 700)])
async def test_a_lower_limit_of_the_request_stays(meter: Meter, asked: int | None, sent: int) -> None:
    recorded(meter).money = 101 + 700
    model = script(ANSWER)

    await collect(metered(model).stream(InferenceRequest("m", REQUEST.messages, decoding=Decoding(max_tokens=asked))))

    assert model.requests[0].decoding.max_tokens == sent


async def test_no_limit_is_sent_while_much_money_is_left_or_none_is_counted(meter: Meter) -> None:
    model = script(ANSWER, ANSWER)
    await collect(metered(model).stream(REQUEST))
    recorded(meter).limits_money, recorded(meter).money = False, 0

    await collect(metered(model).stream(REQUEST))

    assert [request.decoding.max_tokens for request in model.requests] == [None, None]
    assert top_ups(meter) == []


@pytest.mark.parametrize(
    "refusal",
    [
        InvalidRequest("max_tokens is too large: 50000", param="max_tokens"),
        ContextLengthExceeded("This model's maximum context length is 8192 tokens", param="messages"),
    ],
)
async def test_a_limit_above_the_models_own_is_omitted(meter: Meter, refusal: StintError) -> None:
    recorded(meter).money = 50_000
    model = script([refusal], ANSWER)

    chunks = await collect(metered(model).stream(REQUEST))

    assert chunks == PRICED
    assert [request.decoding.max_tokens for request in model.requests] == [50_000 - 101, None]


async def test_other_refusals_are_not_repeated(meter: Meter) -> None:
    recorded(meter).money = 50_000
    model = script([InvalidRequest("No such model", param="model")], ANSWER)

    with pytest.raises(InvalidRequest):
        await collect(metered(model).stream(REQUEST))

    assert len(model.requests) == 1


async def test_a_model_without_a_price_is_refused_by_name_where_money_is_limited(meter: Meter) -> None:
    model = script(ANSWER)

    with pytest.raises(Forbidden, match="'other/M ' has no price") as refused:
        await collect(MeteredModel(model, "other").stream(InferenceRequest("M ", REQUEST.messages)))

    assert (refused.value.code, model.requests) == ("model_without_price", [])
    recorded(meter).limits_money = False
    await collect(MeteredModel(model, "other").stream(InferenceRequest("M ", REQUEST.messages)))
    assert len(model.requests) == 1


@pytest.mark.parametrize(
    "usage",
    [
        Usage(input_tokens=-1_000_000, output_tokens=-5, total_tokens=-1_000_005),
        Usage(input_tokens=10, output_tokens=10**12, total_tokens=10**12),
        Usage(input_tokens=10**300, output_tokens=1, total_tokens=1),
        Usage(),
        Usage(input_tokens=90, total_tokens=90),
        Usage(input_tokens=90, output_tokens=10, total_tokens=100, cached_tokens=-(10**9)),
        Usage(input_tokens=90, output_tokens=10, total_tokens=100, cached_tokens=10**9),
        Usage(input_tokens=90, output_tokens=10, total_tokens=100, reasoning_tokens=10**9),
        Usage(input_tokens=90, output_tokens=10, total_tokens=100, cached_tokens=91),
        Usage(input_tokens=90, output_tokens=10, total_tokens=100, cached_tokens=50, cache_write_tokens=50),
        Usage(input_tokens=2, output_tokens=10, total_tokens=12),
    ],
)
async def test_usage_that_cannot_be_true_is_estimated_instead(meter: Meter, usage: Usage) -> None:
    chunks = await collect(metered(script([TextChunk("Hi"), Finished(FinishReason.stop, usage)])).stream(REQUEST))

    assert recorded(meter).calls[-1] == ("settle", 102, 102)
    assert (meter.counted.input_tokens, meter.counted.output_tokens, meter.counted.model_dollars) == (101, 1, 102)
    assert chunks[-1].usage.total_tokens == 102


THOUGHT = Reasoning(signature="g" * 3_000_000)


@pytest.mark.parametrize("tokens", [260_000, 750_000, 120])
@pytest.mark.parametrize("thought", [THOUGHT, Reasoning(redacted=THOUGHT.signature), Reasoning(late=THOUGHT.signature)])
async def test_encrypted_reasoning_is_read_by_its_own_model_and_not_sent_to_others(
    meter: Meter, tokens: int, thought: Reasoning
) -> None:
    usage = Usage(input_tokens=tokens, output_tokens=10, total_tokens=tokens + 10)
    asked = replace(REQUEST, messages=(AssistantAnswer("", reasoning=thought), *REQUEST.messages))

    await collect(metered(script([TextChunk("Hi"), Finished(FinishReason.stop, usage)])).stream(asked))

    assert recorded(meter).calls[0][1] == 750_101 + ANSWER_TOKENS
    assert recorded(meter).calls[-1] == ("settle", tokens + 10, tokens + 10)


async def test_less_than_the_texts_beside_reasoning_can_have_is_not_believed(meter: Meter) -> None:
    usage = Usage(input_tokens=2, output_tokens=10, total_tokens=12)
    asked = replace(REQUEST, messages=(AssistantAnswer("", reasoning=THOUGHT), *REQUEST.messages))

    await collect(metered(script([TextChunk("Hi"), Finished(FinishReason.stop, usage)])).stream(asked))

    assert recorded(meter).calls[-1] == ("settle", 750_102, 750_102)


async def test_fewer_tokens_than_an_answer_can_have_are_not_believed(meter: Meter) -> None:
    told = Finished(FinishReason.stop, Usage(input_tokens=101, output_tokens=1, total_tokens=102))
    chunks = await collect(metered(script([TextChunk("word " * 800), told])).stream(REQUEST))

    assert chunks[-1].usage.output_tokens == 1_001


async def test_more_tokens_than_the_limit_of_an_answer_are_not_believed(meter: Meter) -> None:
    told = Finished(FinishReason.stop, Usage(input_tokens=101, output_tokens=199_000, total_tokens=199_101))
    request = InferenceRequest("m", REQUEST.messages, decoding=Decoding(max_tokens=16))
    chunks = await collect(metered(script([TextChunk("Hi"), told])).stream(request))

    assert chunks[-1].usage.output_tokens == 1


async def test_many_hidden_and_cached_tokens_are_believed(meter: Meter) -> None:
    usage = Usage(
        input_tokens=150_000, output_tokens=130_000, total_tokens=280_000, cached_tokens=1_000, reasoning_tokens=129_990
    )

    await collect(metered(script([TextChunk("Hi"), Finished(FinishReason.stop, usage)])).stream(REQUEST))

    assert meter.counted.output_tokens == 130_000


async def test_a_long_answer_whose_provider_counts_nothing_costs_what_was_streamed(meter: Meter) -> None:
    await collect(metered(script([*words(5_000), Finished(FinishReason.stop)])).stream(REQUEST))

    assert recorded(meter).calls[-1][1] == 101 + 5_001


class Uncounted(Script):
    """A provider that reports tokens only with an answer."""

    async def count_tokens(self, request: InferenceRequest) -> int:
        raise CountNeedsAnswer("It has no way to count.")


async def test_tokens_that_only_an_answer_shows_are_paid_for(meter: Meter) -> None:
    model = Uncounted([ANSWER])
    asked = InferenceRequest("m", REQUEST.messages, decoding=Decoding(max_tokens=500))

    assert await metered(model).count_tokens(asked) == 90

    assert [request.decoding.max_tokens for request in model.requests] == [16]
    assert recorded(meter).calls == [("admit", 117, 117), ("settle", 100, 100)]
    assert meter.counted.model_calls == 1


async def test_a_provider_without_usage_cannot_count() -> None:
    with pytest.raises(NotSupported, match="'m' reports no usage"):
        await metered(Uncounted([[Accepted(), Finished(FinishReason.stop)]])).count_tokens(REQUEST)


async def test_a_count_by_the_provider_costs_nothing(meter: Meter) -> None:
    assert await metered(script(ANSWER)).count_tokens(REQUEST) == 1

    assert recorded(meter).calls == []
