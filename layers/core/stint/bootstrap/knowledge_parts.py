"""The parts of the knowledge services."""

from collections.abc import Callable
from functools import partial
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
    from stint.services.knowledge.embedding_models import EmbeddingModels
    from stint.services.registry.registry import Registry


@dataclass(frozen=True, slots=True)
class KnowledgeParts:
    """The parts that all tenants of a process share.

    `meters` returns a tenant's meters, and `get_registry` its registry.
    """

    adapters: Adapters
    store: Store
    make_index: "Callable[[], VectorIndex]"
    deletions: Deletions
    send: SendTask
    meters: Callable[[str], Meters]
    get_registry: "Callable[[str], Registry] | None" = None

    def embedding_models(self, tenant: str) -> "EmbeddingModels":
        """Return the embedding models of a tenant: those of the settings, and those that it registered."""
        from stint.services.knowledge.embedding_models import EmbeddingModels  # noqa: PLC0415 - not at the start

        get_registry = partial(self.get_registry, tenant) if self.get_registry else None
        return EmbeddingModels(self.adapters.embedders, get_registry, model_access(tenant, self.adapters.settings))
