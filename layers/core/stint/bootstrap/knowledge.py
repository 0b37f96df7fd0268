"""Composition of the services of knowledge: files, vector stores, retrieval.

Each part is imported when it is made, so that functions that rarely need it start without it.
"""

from collections.abc import Callable
from functools import cache, cached_property
from typing import TYPE_CHECKING

from stint.bootstrap.agents import AgentsComposition, defer_idempotency
from stint.bootstrap.knowledge_parts import KnowledgeParts
from stint.bootstrap.restore import per_tenant
from stint.domain.tasks import DeletionTask, ObjectKind
from stint.services.deletions import DeleteObject, Deletions
from stint.settings import Settings
from stint.store.store import Store

if TYPE_CHECKING:
    from stint.apis.knowledge import KnowledgeServices
    from stint.bootstrap.vector_stores import VectorStoreServices
    from stint.retrieval.port import VectorIndex
    from stint.services.knowledge.containers import Containers
    from stint.services.knowledge.embeddings import TextEmbeddings
    from stint.services.knowledge.inbox import InboxDocuments
    from stint.services.knowledge.ingestion import Ingestion
    from stint.services.knowledge.search import Search


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
            find_models=lambda tenant: self.make_services(tenant).registry.find_models,
        )

    def get_index(self) -> "VectorIndex":
        return self.adapters.vector_index

    def deletion_kinds(self) -> dict[ObjectKind, DeleteObject]:
        return super().deletion_kinds() | delete_knowledge_objects(self.store, self.get_index)

    def compose_search(self, tenant: str) -> "Search":
        """Make the search of a tenant's vector stores."""
        from stint.services.knowledge.expired_stores import ExpiredStores  # noqa: PLC0415 - see above
        from stint.services.knowledge.search import Search  # noqa: PLC0415 - see above

        models, expired = (
            self.knowledge_parts.embedding_models(tenant),
            ExpiredStores(tenant, self.store, self.queue.send),
        )
        return Search(tenant, self.store, self.get_index(), models, expired)

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


def delete_knowledge_objects(store: Store, make_index: "Callable[[], VectorIndex]") -> dict[ObjectKind, DeleteObject]:
    """Return the functions that delete files, uploads, vector stores and their documents."""

    async def delete_file(task: DeletionTask, deadline: float) -> bool:
        from stint.services.knowledge.files import FileDeletion  # noqa: PLC0415 - see above
        from stint.services.knowledge.removal import Removal  # noqa: PLC0415 - see above

        detach = Removal(store, make_index).detach_file
        return await FileDeletion(store.files, detach).delete(task, deadline)

    async def delete_upload(task: DeletionTask, deadline: float) -> bool:
        from stint.services.knowledge.uploads import UploadDeletion  # noqa: PLC0415 - see above

        return await UploadDeletion(store.uploads).delete(task, deadline)

    async def delete_store(task: DeletionTask, deadline: float) -> bool:
        from stint.services.knowledge.removal import Removal  # noqa: PLC0415 - see above

        return await Removal(store, make_index).delete_store(task, deadline)

    async def delete_document(task: DeletionTask, deadline: float) -> bool:
        from stint.services.knowledge.removal import Removal  # noqa: PLC0415 - see above

        return await Removal(store, make_index).delete_document(task, deadline)

    async def delete_contents(task: DeletionTask, deadline: float) -> bool:
        from stint.services.knowledge.removal import Removal  # noqa: PLC0415 - see above

        return await Removal(store, make_index).delete_contents(task, deadline)

    return {
        "file": delete_file,
        "upload": delete_upload,
        "vector_store": delete_store,
        "store_document": delete_document,
        "store_contents": delete_contents,
        "container": lambda task, _: store.containers.delete(task.tenant, task.ids[0]),
    }


def compose_containers(tenant: str, store: Store, deletions: Deletions) -> "Containers":
    """Make the use case of a tenant's containers, whose modules are loaded now."""
    from stint.services.knowledge.container_files import ContainerFiles  # noqa: PLC0415 - see above
    from stint.services.knowledge.containers import Containers  # noqa: PLC0415 - see above

    contents = ContainerFiles(tenant, store.containers, store.files, deletions.send)
    return Containers(tenant, store.containers, contents, deletions)


def compose_knowledge(tenant: str, parts: KnowledgeParts, vector_stores: "VectorStoreServices") -> "KnowledgeServices":
    """Make the use cases of a tenant."""
    from stint.apis.knowledge import KnowledgeServices  # noqa: PLC0415 - see above
    from stint.bootstrap.rag import compose_rag  # noqa: PLC0415 - see above
    from stint.services.knowledge.files import Files  # noqa: PLC0415 - see above
    from stint.services.knowledge.uploads import Uploads  # noqa: PLC0415 - see above

    rag = compose_rag(tenant, parts.adapters, parts.store, parts.send)

    @cache
    def make_embeddings() -> "TextEmbeddings":
        from stint.services.knowledge.embeddings import TextEmbeddings  # noqa: PLC0415 - see above

        return TextEmbeddings(parts.embedding_models(tenant))

    return KnowledgeServices(
        files=Files(tenant, parts.store.files, parts.deletions),
        make_containers=cache(lambda: compose_containers(tenant, parts.store, parts.deletions)),
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
        make_embeddings=make_embeddings,
        make_idempotent_requests=defer_idempotency(tenant, parts.store, parts.adapters.settings.lease_seconds),
    )
