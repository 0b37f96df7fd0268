"""Composition of vector stores: their documents, ingestion and searches."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from stint.domain.tasks import IngestionTask
from stint.retrieval.embedder_router import EmbedderRouter
from stint.retrieval.port import VectorIndex
from stint.services.deletions import Deletions
from stint.services.knowledge.contents import ContentReader, ExtractText, ReadFile, ReadObject
from stint.services.knowledge.embedding_models import EmbeddingModels
from stint.services.knowledge.ingestion import Ingestion
from stint.services.knowledge.insertions import Insertions
from stint.services.knowledge.search import Search
from stint.services.knowledge.store_documents import FindFile, StoreDocuments
from stint.services.knowledge.tasks import IngestionTasks
from stint.services.knowledge.usage import UsageCounter
from stint.services.knowledge.vector_stores import VectorStoresOfTenant
from stint.store.store import Store


@dataclass(frozen=True, slots=True)
class VectorStoreServices:
    """The use cases of a tenant's vector stores."""

    stores: VectorStoresOfTenant
    documents: StoreDocuments
    insertions: Insertions
    search: Search


def compose_vector_stores(
    tenant: str,
    store: Store,
    index: VectorIndex,
    router: EmbedderRouter,
    deletions: Deletions,
    send: Callable[[IngestionTask], Awaitable[None]],
    find_file: FindFile,
) -> VectorStoreServices:
    """Make the use cases of a tenant."""
    models, tasks = EmbeddingModels(router), IngestionTasks(tenant, send)
    usage, search = UsageCounter(tenant, store, tasks), Search(tenant, store, index, models)
    insertions = Insertions(tenant, store, tasks)
    documents = StoreDocuments(tenant, store, insertions, usage, find_file, deletions)
    stores = VectorStoresOfTenant(tenant, store, models, documents, usage, search, deletions)
    return VectorStoreServices(stores, documents, insertions, search)


def compose_ingestion(
    tenant: str,
    store: Store,
    index: VectorIndex,
    router: EmbedderRouter,
    lease_seconds: float,
    read_file: ReadFile,
    read_object: ReadObject,
    extract_text: ExtractText,
) -> Ingestion:
    """Make the worker's use case of a tenant."""
    contents = ContentReader(store.vector_store_contents, read_file, read_object, extract_text)
    return Ingestion(tenant, store, index, EmbeddingModels(router), contents, lease_seconds)
