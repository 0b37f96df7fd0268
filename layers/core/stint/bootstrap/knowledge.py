"""Composition of the services of knowledge: files, vector stores, retrieval.

Each part is imported when it is made, so that functions that rarely need it start without it.
"""

from collections.abc import Callable
from functools import cache, cached_property
from typing import TYPE_CHECKING

from stint.bootstrap.agents import AgentsComposition
from stint.domain.tasks import DeletionTask, ObjectKind
from stint.services.deletions import DeleteObject, Deletions
from stint.settings import Settings
from stint.store.store import Store

if TYPE_CHECKING:
    from stint.retrieval.port import VectorIndex
    from stint.services.knowledge.search import Search
    from stint.services.knowledge_api import KnowledgeServices


class KnowledgeComposition(AgentsComposition):
    """The parts of a process that serves files and vector stores, or calls them."""

    def __init__(self, read_settings: Callable[[], Settings]) -> None:
        super().__init__(read_settings)
        self.make_knowledge_services: Callable[[str], KnowledgeServices] = cache(self.compose_knowledge_services)

    def deletion_kinds(self) -> dict[ObjectKind, DeleteObject]:
        return super().deletion_kinds() | delete_knowledge_objects(self.store)

    @cached_property
    def vector_index(self) -> "VectorIndex":
        from stint.bootstrap.retrieval import make_vector_index  # noqa: PLC0415 - see above

        return make_vector_index(self.settings)

    def compose_search(self, tenant: str) -> "Search":
        """Make the search of a tenant's vector stores."""
        from stint.services.knowledge.embedding_models import EmbeddingModels  # noqa: PLC0415 - see above
        from stint.services.knowledge.search import Search  # noqa: PLC0415 - see above

        return Search(tenant, self.store, self.vector_index, EmbeddingModels(self.adapters.embedders))

    def compose_knowledge_services(self, tenant: str) -> "KnowledgeServices":
        return compose_knowledge(tenant, self.settings, self.store, self.deletions)


def delete_knowledge_objects(store: Store) -> dict[ObjectKind, DeleteObject]:
    """Return the functions that delete files and uploads."""

    async def delete_file(task: DeletionTask, deadline: float) -> bool:
        from stint.services.knowledge.files import FileDeletion  # noqa: PLC0415 - see above

        return await FileDeletion(store.files, detach_nothing).delete(task, deadline)

    async def delete_upload(task: DeletionTask, deadline: float) -> bool:
        from stint.services.knowledge.uploads import UploadDeletion  # noqa: PLC0415 - see above

        return await UploadDeletion(store.uploads).delete(task, deadline)

    return {"file": delete_file, "upload": delete_upload}


async def detach_nothing(_tenant: str, _file_id: str, _deadline: float) -> bool:
    return True


def compose_knowledge(tenant: str, settings: Settings, store: Store, deletions: Deletions) -> "KnowledgeServices":
    """Make the use cases of a tenant."""
    from stint.services.knowledge.files import Files  # noqa: PLC0415 - see above
    from stint.services.knowledge.uploads import Uploads  # noqa: PLC0415 - see above
    from stint.services.knowledge_api import KnowledgeServices  # noqa: PLC0415 - see above

    return KnowledgeServices(
        files=Files(tenant, store.files, deletions),
        uploads=Uploads(tenant, store.uploads, store.files, deletions),
        heartbeat_seconds=settings.heartbeat_seconds,
    )
