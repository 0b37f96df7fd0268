"""Routing of embedding model ids to embedders.

Calls are counted, and admitted by the budgets of the run that makes them.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from stint.dataclasses import dataclass
from stint.domain.errors import ContextLengthExceeded, InvalidRequest, ModelError
from stint.domain.inference import Usage
from stint.domain.prices import is_free
from stint.domain.token_estimates import CHARACTERS_PER_TOKEN, can_be_true
from stint.metering import Meter, find_meter
from stint.request_totals import count_model_error
from stint.retrieval.dimensions import MINILM, minilm_model
from stint.retrieval.port import Embedder, Embeddings
from stint.run_stop import admit_model_call, refuse_stopped

SENTENCE_TRANSFORMERS = "sentence-transformers/"

REFUSED = (InvalidRequest, ContextLengthExceeded)
"""Errors of texts that the provider, or its embedder, refuses."""


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


class MeteredEmbedder:
    """The embedding models of a provider. Outside of a run, nothing is counted."""

    def __init__(self, embedder: Embedder, provider: str) -> None:
        self.embedder = embedder
        self._provider = provider

    def dimension(self, model_id: str) -> int | None:
        """Return the dimension of a model's vectors; see the port."""
        return self.embedder.dimension(model_id)

    async def embed(
        self,
        model_id: str,
        texts: Sequence[str],
        *,
        kind: Literal["document", "query"] = "document",
        dimensions: int | None = None,
    ) -> Embeddings:
        """Embed texts once the budgets of the run admit it; see the port."""
        # Before the reservation: a stopped run reserves nothing.
        await admit_model_call()
        meter = find_meter()
        try:
            if meter is None:
                found = await self.embedder.embed(model_id, texts, kind=kind, dimensions=dimensions)
            else:
                found = await self._embed_metered(meter, model_id, texts, kind, dimensions=dimensions)
        except ModelError as error:
            count_model_error(error)
            raise
        # After the call as well: what was computed for a run that was stopped meanwhile is not used.
        await refuse_stopped()
        return found

    async def _embed_metered(
        self,
        meter: Meter,
        model_id: str,
        texts: Sequence[str],
        kind: Literal["document", "query"],
        dimensions: int | None,
    ) -> Embeddings:
        """Embed texts under a reservation of their estimated tokens, which a call without usable vectors costs."""
        full_id, estimated = f"{self._provider}/{model_id}", usage_of(estimate(texts))
        dollars, reservation = 0.0, None
        if meter.spending is not None:
            dollars = meter.require_price(full_id).cost_of(estimated)
            reservation = await meter.spending.admit_call(
                estimated.total_tokens, dollars, dollars, estimated.total_tokens
            )
        spent, cost = estimated, dollars
        try:
            found = await self.embedder.embed(model_id, texts, kind=kind, dimensions=dimensions)
            told = estimated if found.tokens is None else usage_of(found.tokens)
            # The count of a provider is used only if so many tokens are possible.
            spent = told if can_be_true(told, 4 * sum(map(len, texts)), 0) else estimated
            cost = meter.count_call(full_id, spent)
        except BaseException as error:
            # Nothing was computed. After any other error, also a cancellation, the provider may have charged for the
            # texts.
            if is_free(error) or isinstance(error, REFUSED):
                spent, cost = Usage(), 0.0
            else:
                cost = meter.count_call(full_id, spent)
            raise
        finally:
            if reservation:
                await reservation.settle(spent.total_tokens, cost, cost)
        return found


def estimate(texts: Sequence[str]) -> int:
    """Return the probable number of tokens."""
    return sum(map(len, texts)) // CHARACTERS_PER_TOKEN + 1


def usage_of(tokens: int) -> Usage:
    return Usage(input_tokens=tokens, total_tokens=tokens)
