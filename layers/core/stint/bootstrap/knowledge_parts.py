"""The parts of the knowledge services."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from stint.bootstrap.adapters import Adapters
from stint.bootstrap.defaults import model_access
from stint.dataclasses import dataclass
from stint.domain.tasks import SendTask
from stint.services.deletions import Deletions
from stint.spending.meters import Meters
from stint.store.store import Store

if TYPE_CHECKING:
    from stint.retrieval.port import VectorIndex
    from stint.services.knowledge.embedding_models import EmbeddingModels, FindModels


@dataclass(frozen=True, slots=True)
class KnowledgeParts:
    """The parts that all tenants of a process share.

    `meters` returns a tenant's meters, and `find_models` the function that finds its models in the registry.
    """

    adapters: Adapters
    store: Store
    make_index: "Callable[[], VectorIndex]"
    deletions: Deletions
    send: SendTask
    meters: Callable[[str], Meters]
    find_models: "Callable[[str], FindModels] | None" = None

    def embedding_models(self, tenant: str) -> "EmbeddingModels":
        """Return the embedding models of a tenant: those of the settings, and those that it registered."""
        from stint.services.knowledge.embedding_models import EmbeddingModels  # noqa: PLC0415 - not at the start

        find_models = self.find_models and self.find_models(tenant)
        return EmbeddingModels(self.adapters.embedders, find_models, model_access(tenant, self.adapters.settings))
