"""The parts of which the services of knowledge are made."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stint.bootstrap.adapters import Adapters
from stint.domain.tasks import IngestionTask
from stint.services.deletions import Deletions
from stint.store.store import Store

if TYPE_CHECKING:
    from stint.retrieval.port import VectorIndex


@dataclass(frozen=True, slots=True)
class KnowledgeParts:
    """The parts that all tenants of a process share."""

    adapters: Adapters
    store: Store
    make_index: "Callable[[], VectorIndex]"
    deletions: Deletions
    send: Callable[[IngestionTask], Awaitable[None]]
