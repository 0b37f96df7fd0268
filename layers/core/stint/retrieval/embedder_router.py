"""Routing of embedding model ids to embedders."""

from collections.abc import Callable, Mapping

from stint.dataclasses import dataclass
from stint.domain.errors import InvalidRequest
from stint.retrieval.dimensions import MINILM, minilm_model
from stint.retrieval.metered import MeteredEmbedder
from stint.retrieval.port import Embedder

SENTENCE_TRANSFORMERS = "sentence-transformers/"


@dataclass(frozen=True, slots=True)
class ResolvedEmbedder:
    """An embedding model with its embedder.

    `model_id` is the full id, `provider/ID`, and the same for all names of the model. `dimension` is None if only an
    answer of the provider shows it.
    """

    embedder: Embedder
    model_id: str
    provider_model_id: str
    dimension: int | None


class EmbedderRouter:
    """Chooses embedders by prefix: `hashed/words-384`, `bedrock/ID`, `openai/ID`, or the id of another provider.

    An id without a known prefix belongs to the provider of `default_model`. Llama Stack's clients name
    `all-MiniLM-L6-v2`, and models of `sentence-transformers`. They stand for the default model; if that is `hashed/`,
    for `hashed/words-384`. Embedders are made when first needed, and kept.
    """

    def __init__(self, factories: Mapping[str, Callable[[], Embedder]], default_model: str) -> None:
        self._factories = factories
        self.providers = sorted(factories)
        self.default_model = default_model
        self._embedders: dict[str, Embedder] = {}

    def resolve(self, model_id: str) -> ResolvedEmbedder:
        """Return the embedder of a model, and the provider's own id.

        Raises:
            InvalidRequest: the provider has no embedding models, the prefix has no id, or the model does not exist.
        """
        provider, provider_model_id = self.route(model_id)
        if provider not in self._embedders:
            self._embedders[provider] = MeteredEmbedder(self._factories[provider](), provider)
        embedder = self._embedders[provider]
        dimension = embedder.dimension(provider_model_id)
        return ResolvedEmbedder(embedder, f"{provider}/{provider_model_id}", provider_model_id, dimension)

    def names_provider(self, model_id: str) -> bool:
        """Return whether an id begins with a provider of embedding models."""
        provider, found, _ = model_id.partition("/")
        return bool(found) and provider in self._factories

    def is_alias(self, model_id: str) -> bool:
        """Return whether an id is that of Llama Stack's clients for the default model."""
        return model_id == MINILM or model_id.startswith(SENTENCE_TRANSFORMERS)

    def route(self, model_id: str) -> tuple[str, str]:
        """Return the provider of a model and its own id. Raises as `resolve` does."""
        default_provider = self.default_model.partition("/")[0]
        if self.is_alias(model_id):
            model_id = minilm_model(self.default_model)
        provider, _, provider_model_id = model_id.partition("/")
        # Ids of models may contain slashes themselves.
        if not self.names_provider(model_id):
            provider, provider_model_id = default_provider, model_id
        if provider not in self._factories or not provider_model_id:
            raise InvalidRequest(
                f"Embedding model {model_id!r} does not exist. Write PROVIDER/ID with one of the providers "
                f"{', '.join(self.providers)}, or set STINT_EMBEDDING_MODEL to such an id.",
                code="model_not_found",
                param="model",
            )
        return provider, provider_model_id
