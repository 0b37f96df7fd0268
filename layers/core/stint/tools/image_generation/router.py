"""Routing of image model ids to the providers' models."""

from collections.abc import Callable, Mapping

from stint.dataclasses import dataclass
from stint.domain.errors import InvalidRequest
from stint.tools.image_generation.metered import MeteredImages
from stint.tools.image_generation.port import ImageModel


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
