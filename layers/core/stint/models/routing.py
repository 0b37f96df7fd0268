"""Which adapter answers for a model id."""

from collections.abc import Callable, Mapping

from stint.domain.errors import InvalidRequest
from stint.models.port import Model

HINTS = {
    "openai": "set OPENAI_BASE_URL and OPENAI_API_KEY",
    "bedrock": "configure AWS credentials and a region",
    "scripted": "it is for demos and tests",
}


class Router:
    """Chooses adapters by prefix: `bedrock/ID`, `openai/ID`, `scripted/ID`.

    An id without such a prefix goes as it is to the adapter of `default_model`, slashes included: Llama Stack's ids
    have them. What vLLM calls `openai/gpt-oss-20b` is `openai/openai/gpt-oss-20b` here. Adapters are made when first
    asked for, and kept.
    """

    def __init__(self, factories: Mapping[str, Callable[[], Model]], default_model: str) -> None:
        self._factories = factories
        self._default_model = default_model
        self._models: dict[str, Model] = {}

    def resolve(self, model_id: str) -> tuple[Model, str]:
        """Give the adapter of a model, and the id that its provider knows.

        Raises:
            InvalidRequest: the provider is not configured, or no id follows the prefix.
        """
        provider, provider_model_id = self.route(model_id)
        if provider not in self._models:
            self._models[provider] = self._factories[provider]()
        return self._models[provider], provider_model_id

    def route(self, model_id: str) -> tuple[str, str]:
        """Give the provider of a model and the id that it knows; raises as `resolve` does."""
        provider, found, provider_model_id = model_id.partition("/")
        if not found or provider not in {*self._factories, *HINTS}:
            provider, provider_model_id = self._default_model.partition("/")[0], model_id
        if provider not in self._factories:
            hint = HINTS.get(provider, "set STINT_DEFAULT_MODEL to an id that begins with a provider")
            raise InvalidRequest(
                f"Model {model_id!r} needs the provider {provider!r}, which is not configured here: {hint}",
                code="model_not_found",
                param="model",
            )
        if not provider_model_id:
            raise InvalidRequest(
                f"Model {model_id!r} names a provider and no model: write {provider}/ID",
                code="model_not_found",
                param="model",
            )
        return provider, provider_model_id
