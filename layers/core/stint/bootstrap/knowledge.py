"""Composition of the services of knowledge: files, vector stores, retrieval.

Each part is imported when it is made, so that functions that rarely need it start without it.
"""

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from stint.bootstrap.agents import AgentsComposition
from stint.bootstrap.knowledge_parts import KnowledgeParts
from stint.bootstrap.restore import per_tenant
from stint.dataclasses import dataclass
from stint.domain.tasks import ObjectKind
from stint.lazy import Lazy, lazy
from stint.services.deletions import DeleteObject
from stint.settings import Settings
from stint.store.store import Store

if TYPE_CHECKING:
    from stint.apis.knowledge import KnowledgeServices
    from stint.bootstrap.vector_stores import VectorStoreServices
    from stint.retrieval.port import VectorIndex
    from stint.services.knowledge.files import FileDeletion
    from stint.services.knowledge.inbox import InboxDocuments
    from stint.services.knowledge.ingestion import Ingestion
    from stint.services.knowledge.removal import Removal
    from stint.services.knowledge.search import Search
    from stint.services.knowledge.uploads import UploadDeletion


class KnowledgeComposition(AgentsComposition):
    """The parts of a process that serves files and vector stores, or calls them."""

    def __init__(self, read_settings: Callable[[], Settings]) -> None:
        super().__init__(read_settings)
        self.make_knowledge_services: Callable[[str], KnowledgeServices] = per_tenant(self.compose_knowledge_services)
        self.make_vector_stores: Callable[[str], VectorStoreServices] = per_tenant(self.compose_vector_stores)
        self.make_ingestion: Callable[[str], Ingestion] = per_tenant(self.compose_ingestion)

    @cached_property
    def knowledge_parts(self) -> KnowledgeParts:
        return KnowledgeParts(
            adapters=self.adapters,
            store=self.store,
            make_index=self.get_index,
            deletions=self.deletions,
            send=self.queue.send,
            meters=lambda tenant: self.make_services(tenant).meters,
            get_registry=lambda tenant: self.make_services(tenant).registry,
        )

    def get_index(self) -> "VectorIndex":
        return self.adapters.vector_index

    def deletion_kinds(self) -> dict[ObjectKind, DeleteObject]:
        return super().deletion_kinds() | delete_knowledge_objects(self.store, self.get_index)

    def compose_search(self, tenant: str) -> "Search":
        """Make the search of a tenant's vector stores."""
        from stint.services.knowledge import expired_stores, search  # noqa: PLC0415 - see above

        models = self.knowledge_parts.embedding_models(tenant)
        expired = expired_stores.ExpiredStores(tenant, self.store, self.queue.send)
        return search.Search(tenant, self.store, self.get_index, models, expired=expired)

    def compose_knowledge_services(self, tenant: str) -> "KnowledgeServices":
        return compose_knowledge(tenant, self.knowledge_parts, self.make_vector_stores(tenant))

    def compose_vector_stores(self, tenant: str) -> "VectorStoreServices":
        from stint.bootstrap.vector_stores import compose_vector_stores  # noqa: PLC0415 - see above

        return compose_vector_stores(tenant, self.knowledge_parts)

    def compose_ingestion(self, tenant: str) -> "Ingestion":
        from stint.bootstrap.vector_stores import compose_ingestion  # noqa: PLC0415 - see above

        return compose_ingestion(tenant, self.knowledge_parts)

    def compose_inbox(self, tenant: str) -> "InboxDocuments":
        """Make the worker's handler of objects that are put into the inbox."""
        from stint.services.knowledge.inbox import InboxDocuments  # noqa: PLC0415 - see above

        services = self.make_vector_stores(tenant)
        return InboxDocuments(tenant, self.store, services.documents, services.insertions)


@dataclass(frozen=True)
class KnowledgeDeletion:
    """The use cases that delete files, uploads, vector stores and their documents."""

    store: Store
    make_index: "Callable[[], VectorIndex]"

    removal: "ClassVar[Lazy[KnowledgeDeletion, Removal]]" = lazy(
        "stint.services.knowledge.removal:Removal", lambda self, cls: cls(self.store, self.make_index)
    )
    files: "ClassVar[Lazy[KnowledgeDeletion, FileDeletion]]" = lazy(
        "stint.services.knowledge.files:FileDeletion",
        lambda self, cls: cls(self.store.files, self.removal.detach_file),
    )
    uploads: "ClassVar[Lazy[KnowledgeDeletion, UploadDeletion]]" = lazy(
        "stint.services.knowledge.uploads:UploadDeletion", lambda self, cls: cls(self.store.uploads)
    )


def delete_knowledge_objects(store: Store, make_index: "Callable[[], VectorIndex]") -> dict[ObjectKind, DeleteObject]:
    """Return the functions that delete files, uploads, vector stores and their documents."""
    parts = KnowledgeDeletion(store, make_index)
    return {
        "file": lambda task, deadline: parts.files.delete(task, deadline),
        "upload": lambda task, deadline: parts.uploads.delete(task, deadline),
        "vector_store": lambda task, deadline: parts.removal.delete_store(task, deadline),
        "store_document": lambda task, deadline: parts.removal.delete_document(task, deadline),
        "store_contents": lambda task, deadline: parts.removal.delete_contents(task, deadline),
        "container": lambda task, _: store.containers.delete(task.tenant, task.ids[0]),
    }


def compose_knowledge(tenant: str, parts: KnowledgeParts, vector_stores: "VectorStoreServices") -> "KnowledgeServices":
    """Make the use cases of a tenant."""
    from stint.apis.knowledge import KnowledgeServices  # noqa: PLC0415 - see above
    from stint.bootstrap.rag import compose_rag  # noqa: PLC0415 - see above
    from stint.services.knowledge.files import Files  # noqa: PLC0415 - see above
    from stint.services.knowledge.uploads import Uploads  # noqa: PLC0415 - see above

    rag = compose_rag(tenant, parts.adapters, parts.store, parts.send)

    return KnowledgeServices(
        tenant=tenant,
        store=parts.store,
        lease_seconds=parts.adapters.settings.lease_seconds,
        files=Files(tenant, parts.store.files, parts.deletions),
        uploads=Uploads(tenant, parts.store.uploads, parts.store.files, parts.deletions),
        vector_stores=vector_stores.stores,
        store_documents=vector_stores.documents,
        file_batches=vector_stores.batches,
        vector_dbs=rag.vector_dbs,
        vector_io=rag.vector_io,
        rag=rag.rag,
        rag_insertion=rag.rag_insertion,
        meters=parts.meters(tenant),
        heartbeat_seconds=parts.adapters.settings.heartbeat_seconds,
    )
