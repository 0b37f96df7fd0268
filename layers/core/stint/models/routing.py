"""Routing of model ids to adapters.

An id begins with its provider. Ids without one belong to the provider of the default model, because Llama Stack's ids
contain slashes, too.
"""

from collections.abc import Callable, Iterable, Mapping, Set

from stint.domain.errors import InvalidRequest
from stint.domain.inference import PromptCache
from stint.models.metered import MeteredModel, Suggest
from stint.models.port import ChatModel

DEMO_MODEL = "scripted/demo"
"""The id of the scripted model that is always served if scripted models are enabled, listed or not."""

HINTS = {
    "openai": "set OPENAI_BASE_URL and OPENAI_API_KEY",
    "bedrock": "configure AWS credentials and a region",
    "scripted": "it is for demos and tests; enable it with STINT_SCRIPTED_MODELS=true (parameter ScriptedModels)",
}


DEFAULT_CACHE = PromptCache()


class Router:
    """Chooses adapters by prefix: `bedrock/ID`, `openai/ID`, `scripted/ID`.

    An id without such a prefix, from the configuration or a registration, belongs to the provider of `default_model`,
    including its slashes: Llama Stack's ids have them. vLLM's model `openai/gpt-oss-20b` is `openai/openai/gpt-oss-20b`
    here. Adapters are made when first needed, and kept. Their calls are counted for the run that makes them. `cache` is
    what runs keep in a provider's cache by default. The servers of the providers `with_cache_keys` take a `cache_key`.
    `suggest` returns what to add to the error of a provider that does not have a model.
    """

    def __init__(
        self,
        factories: Mapping[str, Callable[[], ChatModel]],
        default_model: str,
        cache: PromptCache | None = DEFAULT_CACHE,
        with_cache_keys: Set[str] = frozenset(),
        suggest: Suggest = lambda _: "",
    ) -> None:
        self._factories = factories
        self.providers = sorted(factories)
        self.known_providers = frozenset({*factories, *HINTS})
        self.cache = cache
        self.with_cache_keys = with_cache_keys
        self._default_model, self._suggest = default_model, suggest
        self._models: dict[str, ChatModel] = {}

    def resolve(self, model_id: str) -> tuple[ChatModel, str]:
        """Return the adapter of a model, and the provider's own id.

        Raises:
            InvalidRequest: the provider is not configured, or the prefix has no id.
        """
        provider, provider_model_id = self.route(model_id)
        if provider not in self._models:
            # The outermost wrapper, so that no call of a model can be made without being counted.
            self._models[provider] = MeteredModel(self._factories[provider](), provider, self._suggest)
        return self._models[provider], provider_model_id

    def takes_cache_key(self, model: ChatModel) -> bool:
        """Return whether the server of a model that was resolved takes a cache key."""
        return any(self._models.get(name) is model for name in self.with_cache_keys)

    def names_provider(self, model_id: str) -> bool:
        """Return whether an id begins with a provider, configured or not."""
        provider, found, _ = model_id.partition("/")
        return bool(found) and provider in self.known_providers

    def route(self, model_id: str) -> tuple[str, str]:
        """Return the provider of a model and its own id. Raises as `resolve` does."""
        provider, _, provider_model_id = model_id.partition("/")
        if not self.names_provider(model_id):
            provider, provider_model_id = self._default_model.partition("/")[0], model_id
        if provider not in self._factories:
            hint = HINTS.get(provider, "set STINT_DEFAULT_MODEL to an id that begins with a provider")
            raise InvalidRequest(
                f"Model {model_id!r} needs the provider {provider!r}, which is not configured: {hint}",
                code="model_not_found",
                param="model",
            )
        if not provider_model_id:
            raise InvalidRequest(
                f"Model {model_id!r} names a provider but no model: write {provider}/ID",
                code="model_not_found",
                param="model",
            )
        return provider, provider_model_id


def ambiguous_model(model_id: str, full_ids: list[str]) -> InvalidRequest:
    """Make the error for an id without a prefix that several models share."""
    return InvalidRequest(
        f"Model {model_id!r} is ambiguous: write one of {', '.join(map(repr, full_ids))}.",
        code="model_not_found",
        param="model",
    )


def unknown_model(model_id: str, providers: Iterable[str]) -> InvalidRequest:
    """Make the error for an unknown id. `providers` are those of this server."""
    return InvalidRequest(
        f"Model {model_id!r} does not exist. GET /v1/models lists the models. An id that begins with a "
        f"provider ({', '.join(f'{name}/' for name in providers)}) need not be listed.",
        code="model_not_found",
        param="model",
    )
