"""Routing of image model ids to the providers' models.

Calls are counted, and admitted by the budgets of the run that makes them.
"""

from collections.abc import Callable, Mapping

from stint.dataclasses import dataclass
from stint.domain.errors import InvalidRequest, ModelError
from stint.domain.inference import Usage
from stint.domain.prices import is_free
from stint.domain.token_estimates import CHARACTERS_PER_TOKEN, can_be_true
from stint.metering import Meter, find_meter
from stint.request_totals import count_model_error
from stint.run_stop import refuse_stopped
from stint.tools.image_generation.port import GeneratedImage, ImageModel, ImageOptions, ImageRefused

IMAGE_TOKENS = 5_000
"""Tokens that are reserved for an image. One of 1024 by 1024 pixels in high quality has about as many."""


@dataclass(frozen=True, slots=True)
class ResolvedImageModel:
    """An image model. `model_id` is the full id, `provider/ID`."""

    model: ImageModel
    model_id: str
    provider_model_id: str


class ImageRouter:
    """Chooses image models by prefix, such as `bedrock/ID`, `openai/ID` or `scripted/ID`.

    An id without a known prefix belongs to the provider of `default_model`. Models are made when first needed, and
    kept. Their calls are counted for the run that makes them.
    """

    def __init__(self, factories: Mapping[str, Callable[[], ImageModel]], default_model: str) -> None:
        self._factories = factories
        self.default_model = default_model
        self._models: dict[str, ImageModel] = {}

    def resolve(self, model_id: str | None = None) -> ResolvedImageModel:
        """Return an image model, or the default one. Raises InvalidRequest if its provider has no images."""
        wanted = model_id or self.default_model
        provider, _, name = wanted.partition("/")
        if provider not in self._factories:
            provider, name = self.default_model.partition("/")[0], wanted
        if provider not in self._factories or not name:
            known = ", ".join(sorted(self._factories))
            raise InvalidRequest(
                f"Image model {wanted!r} does not exist. Write PROVIDER/ID with one of the providers {known}, or set "
                "STINT_IMAGE_MODEL to such an id.",
                code="model_not_found",
                param="model",
            )
        if provider not in self._models:
            self._models[provider] = MeteredImages(self._factories[provider](), provider)
        return ResolvedImageModel(self._models[provider], f"{provider}/{name}", name)


class MeteredImages:
    """The image models of a provider. Outside of a run, nothing is counted."""

    def __init__(self, model: ImageModel, provider: str) -> None:
        self.model = model
        self._provider = provider

    def check(self, model_id: str, options: ImageOptions, /) -> None:
        """Refuse options that a model lacks; see the port."""
        self.model.check(model_id, options)

    async def generate(self, model_id: str, prompt: str, options: ImageOptions, /) -> GeneratedImage:
        """Generate an image once the budgets of the run admit it; see the port."""
        await refuse_stopped()
        meter = find_meter()
        try:
            if meter is None:
                return await self.model.generate(model_id, prompt, options)
            return await self._generate_metered(meter, model_id, prompt, options)
        except ModelError as error:
            count_model_error(error)
            raise

    async def _generate_metered(
        self, meter: Meter, model_id: str, prompt: str, options: ImageOptions
    ) -> GeneratedImage:
        """Generate an image under a reservation of its probable price, which a call without a usable image costs."""
        full_id, estimated = f"{self._provider}/{model_id}", estimate(prompt)
        dollars, reservation = 0.0, None
        if meter.spending is not None:
            dollars = meter.require_price(full_id).cost_of(estimated, images=1)
            reservation = await meter.spending.admit_call(
                estimated.total_tokens, dollars, dollars, estimated.total_tokens
            )
        spent, cost = estimated.total_tokens, dollars
        try:
            image = await self.model.generate(model_id, prompt, options)
            usage = believable_usage(image.usage, prompt)
            spent, counted = (usage or Usage()).total_tokens, meter.count_image(full_id, usage)
            # A provider that reports nothing, for a model without a price of an image, costs what was reserved.
            cost = counted if usage or counted else dollars
        except BaseException as error:
            if isinstance(error, ImageRefused) or is_free(error):
                spent, cost = 0, 0.0
            else:
                meter.count_image(full_id, None)
            raise
        finally:
            if reservation:
                await reservation.settle(spent, cost, cost)
        return image


def believable_usage(usage: Usage | None, prompt: str) -> Usage | None:
    """Return the tokens that a provider reported; None if they cannot be true."""
    return usage if usage is None or can_be_true(usage, 4 * len(prompt), 0) else None


def estimate(prompt: str) -> Usage:
    """Return the probable tokens of an image."""
    tokens = len(prompt) // CHARACTERS_PER_TOKEN + 1
    return Usage(input_tokens=tokens, output_tokens=IMAGE_TOKENS, total_tokens=tokens + IMAGE_TOKENS)
