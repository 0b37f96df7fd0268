"""The default parameters of a provider, which requests without them get."""

from collections.abc import AsyncIterator

import pytest

from stint.domain.errors import InvalidRequest, ModelError
from stint.domain.inference import Decoding, Finished, FinishReason, InferenceRequest, ModelChunk, UserInput
from stint.domain.inference import ReasoningOptions as Reasoning
from stint.models.default_parameters import DefaultParameters

DEFAULTS = Decoding(temperature=0.2, top_p=0.9, max_tokens=100, stop=("END",), seed=7)


class Recording:
    """A model that records its requests, and lacks seeds."""

    def __init__(self) -> None:
        self.requests: list[InferenceRequest] = []

    def check(self, request: InferenceRequest) -> None:
        if request.decoding.seed == 13:
            raise InvalidRequest("seed 13 is not supported", param="seed")

    async def stream(self, request: InferenceRequest) -> AsyncIterator[ModelChunk]:
        self.requests.append(request)
        yield Finished(FinishReason.stop, None)

    async def count_tokens(self, request: InferenceRequest) -> int:
        self.requests.append(request)
        return 3


def ask(decoding: Decoding, reasoning: Reasoning | None = None) -> InferenceRequest:
    return InferenceRequest("m", (UserInput("Hello"),), decoding=decoding, reasoning=reasoning)


async def sent(request: InferenceRequest, defaults: Decoding = DEFAULTS) -> Decoding:
    recording = Recording()
    model = DefaultParameters(recording, defaults, "the defaults")
    assert [type(chunk) async for chunk in model.stream(request)] == [Finished]
    assert await model.count_tokens(request) == 3
    first, counted = recording.requests
    assert first.decoding == counted.decoding
    return first.decoding


async def test_a_request_without_parameters_gets_all_defaults() -> None:
    assert await sent(ask(Decoding())) == DEFAULTS


async def test_the_parameters_of_a_request_win_also_if_they_are_zero() -> None:
    given = Decoding(temperature=0.0, max_tokens=5, stop=("X",), seed=0)

    assert await sent(ask(given)) == given


@pytest.mark.parametrize("given", [Decoding(temperature=0.0), Decoding(top_p=0.5), Decoding(top_k=3)])
async def test_one_parameter_of_sampling_excludes_the_defaults_of_the_others(given: Decoding) -> None:
    found = await sent(ask(given))

    assert (found.temperature, found.top_p, found.top_k) == (given.temperature, given.top_p, given.top_k)
    assert found.max_tokens == 100


@pytest.mark.parametrize(("effort", "temperature"), [("low", None), ("none", 0.2), (None, 0.2)])
async def test_a_model_that_reasons_gets_no_default_temperature(effort: str | None, temperature: float | None) -> None:
    found = await sent(ask(Decoding(), Reasoning(effort=effort)))

    assert (found.temperature, found.seed) == (temperature, 7)


def test_a_default_that_the_model_lacks_is_not_the_callers_fault() -> None:
    model = DefaultParameters(Recording(), Decoding(seed=13), "the defaults of provider 'lab'")

    with pytest.raises(ModelError, match="the defaults of provider 'lab': seed 13 is not supported"):
        model.check(ask(Decoding()))
    model.check(ask(Decoding(seed=1)))
    with pytest.raises(InvalidRequest):
        model.check(ask(Decoding(seed=13)))
