"""The tool that generates images: its arguments, its limits, and what a call costs."""

import asyncio
import base64
from collections.abc import Iterator
from contextlib import suppress
from math import inf
from typing import Any

import pytest
from tests.servers.images import read_png

from stint.caller import ModelAccess
from stint.domain.content import ImageContentItem, items_of, text_of
from stint.domain.errors import Forbidden, InvalidRequest, ModelError, ModelUnreachable, QuotaExceeded
from stint.domain.inference import Usage
from stint.domain.prices import parse_prices
from stint.domain.tools import GENERATED_IMAGE
from stint.metering import Meter, set_meter
from stint.tools.image_generation.port import GeneratedImage, ImageOptions, ImageRefused
from stint.tools.image_generation.provider import ImageGeneration
from stint.tools.image_generation.router import ImageRouter, estimate
from stint.tools.image_generation.scripted import ScriptedImages, draw
from stint.tools.port import Invocation, Toolgroup, ToolOutcome

GROUP = Toolgroup("builtin::photogen", "image-generation")


class Counting:
    """A model that counts tokens, or fails with an error."""

    def __init__(self, usage: Usage | None = None, error: BaseException | None = None) -> None:
        self.usage, self.error = usage, error

    def check(self, _model_id: str, _options: ImageOptions, /) -> None:
        pass

    async def generate(self, _model_id: str, prompt: str, _options: ImageOptions, /) -> GeneratedImage:
        if self.error is not None:
            raise self.error
        return GeneratedImage(draw(prompt, (32, 32)), "a revised fox", self.usage)


class Budget:
    """The budgets of a run, which allow `dollars` for a call."""

    limits_money = True
    most_dollars = 0.0
    most_tokens = inf

    def __init__(self, dollars: float) -> None:
        self.dollars = dollars
        self.settled: list[tuple[int, float]] = []

    async def admit(self, requests: int = 1, dollars: float = 0.0) -> None: ...

    async def top_up(self, dollars: float) -> float:
        return dollars

    async def admit_call(self, tokens: int, dollars: float, least_dollars: float, _: int) -> "Budget":
        assert tokens > 5_000
        if dollars > self.dollars:
            raise QuotaExceeded("The budget is spent.")
        return self

    async def settle(self, tokens: int, dollars: float, _: float) -> None:
        self.settled.append((tokens, dollars))

    async def close(self, dollars: float, *, started: bool) -> None: ...

    def to_headers(self) -> dict[str, str]:
        return {}


@pytest.fixture(autouse=True)
def no_meter() -> Iterator[None]:
    yield
    set_meter(None)


def provider(model: Any = None, *patterns: str) -> ImageGeneration:
    models = {"scripted": ScriptedImages, "openai": lambda: model}
    router = ImageRouter(models, "openai/gpt-image-2" if model else "scripted/drawing")
    return ImageGeneration(router, lambda: ModelAccess(patterns))


async def call(tool: ImageGeneration, name: str = "photogen", fixed: tuple[str, ...] = (), **given: Any) -> ToolOutcome:
    return await tool.invoke(GROUP, Invocation(name, given, "call_1", fixed=frozenset(fixed)))


def picture(outcome: ToolOutcome) -> Any:
    [image] = [item.image.data for item in items_of(outcome.content) if isinstance(item, ImageContentItem)]
    return read_png(base64.b64decode(image or ""))


@pytest.mark.parametrize(("name", "parameter"), [("photogen", "query"), ("image_generation", "prompt")])
async def test_the_result_has_a_note_the_image_and_its_properties(name: str, parameter: str) -> None:
    outcome = await call(provider(), name, ("size",), size="64x64", **{parameter: "a fox"})

    assert picture(outcome).width == 64
    assert text_of(outcome.content) == "The image was generated, and the user sees it."
    shown = {"model": "scripted/drawing", "media_type": "image/png", "size": "64x64"}
    assert outcome.metadata == {GENERATED_IMAGE: shown}
    assert not outcome.error


async def test_options_of_the_model_have_no_effect() -> None:
    assert picture(await call(provider(), query="a fox", size="64x64", model="openai/other")).width == 512


@pytest.mark.parametrize("given", [{}, {"query": " "}, {"query": 5}, {"prompt": "a fox"}, {"query": "x" * 32_001}])
async def test_a_call_without_a_usable_description_is_answered(given: dict[str, Any]) -> None:
    outcome = await call(provider(), **given)

    assert outcome.error
    assert "description" in str(outcome.content)


async def test_failures_of_the_provider_are_results() -> None:
    outcome = await call(provider(Counting(error=ModelError("Bedrock sent nothing"))), query="a fox")

    assert (outcome.error, outcome.content) == (True, "The image could not be generated: Bedrock sent nothing")


async def test_a_registration_is_checked() -> None:
    tool = provider()

    await tool.check(Toolgroup("art", "image-generation", config={"size": "64x64", "model": "scripted/x"}))
    for config in ({"size": "64"}, {"colour": "red"}, {"model": 5}, {"output_format": "jpeg"}):
        with pytest.raises(InvalidRequest):
            await tool.check(Toolgroup("art", "image-generation", config=config))


async def test_callers_are_limited_to_the_models_that_they_may_use() -> None:
    with pytest.raises(Forbidden, match="'scripted/drawing'"):
        await call(provider(None, "openai/*"), query="a fox")


async def test_an_image_costs_its_tokens_and_its_price() -> None:
    meter = Meter(prices=parse_prices('{"openai/*": {"input": 5, "output": 40, "image": 0.01}}'))
    set_meter(meter)

    usage = Usage(input_tokens=1_000, output_tokens=1_000, total_tokens=2_000)
    await call(provider(Counting(usage)), query="a fox")

    counted = meter.counted
    assert (counted.model_calls, counted.input_tokens, counted.output_tokens) == (1, 1_000, 1_000)
    assert counted.model_dollars == pytest.approx(0.055)


@pytest.mark.parametrize(
    ("prices", "dollars"), [('{"openai/*": {"input": 0, "output": 0, "image": 0.04}}', 0.04), ("", None)]
)
async def test_an_image_without_tokens_has_a_price_or_an_unknown_one(prices: str, dollars: float | None) -> None:
    meter = Meter(prices=parse_prices(prices))
    set_meter(meter)

    await call(provider(Counting()), query="a fox")

    assert meter.counted.model_dollars == dollars


async def test_a_budget_is_reserved_before_and_settled_after() -> None:
    budget = Budget(0.05)
    set_meter(Meter(prices=parse_prices('{"openai/*": {"input": 0, "output": 0, "image": 0.04}}'), spending=budget))

    await call(provider(Counting()), query="a fox")
    await call(provider(Counting(error=ModelError("no", upstream_status=500))), query="a fox")

    assert budget.settled == [(0, 0.04), (0, 0.0)]
    budget.dollars = 0.03
    with pytest.raises(QuotaExceeded):
        await call(provider(Counting()), query="a fox")


@pytest.mark.parametrize(
    ("error", "charged"),
    [
        (InvalidRequest("The image has 4000000 bytes"), 1),
        (ModelError("The provider of the image model sent no image."), 1),
        (asyncio.CancelledError(), 1),
        (ImageRefused("The image model refused"), 0),
        (ModelError("The provider answered 500", upstream_status=500), 0),
        (ModelUnreachable("Cannot reach the provider"), 0),
    ],
)
async def test_a_call_that_the_provider_may_have_charged_costs_its_estimate(error: BaseException, charged: int) -> None:
    budget = Budget(0.05)
    meter = Meter(prices=parse_prices('{"openai/*": {"input": 0, "output": 0, "image": 0.04}}'), spending=budget)
    set_meter(meter)

    with suppress(asyncio.CancelledError, InvalidRequest):
        await call(provider(Counting(error=error)), query="a fox")

    assert budget.settled == [(charged * estimate("a fox").total_tokens, charged * 0.04)]
    assert (meter.counted.model_calls, meter.counted.model_dollars) == (charged, charged * 0.04)


async def test_a_call_ends_at_its_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    class Silent(Counting):
        async def generate(self, _model_id: str, _prompt: str, _options: ImageOptions, /) -> GeneratedImage:
            await asyncio.Event().wait()
            raise AssertionError

    monkeypatch.setattr("stint.tools.image_generation.provider.TIMEOUT", 0.01)

    outcome = await call(provider(Silent()), query="a fox")

    assert outcome.error
    assert "did not respond within" in str(outcome.content)


def test_an_unknown_provider_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="STINT_IMAGE_MODEL"):
        ImageRouter({"scripted": ScriptedImages}, "drawing").resolve()
