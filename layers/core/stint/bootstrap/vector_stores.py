"""Composition of vector stores: their documents, ingestion and searches."""

from typing import TYPE_CHECKING

from stint.dataclasses import dataclass
from stint.services.knowledge.chunk_writer import ChunkWriter
from stint.services.knowledge.contents import ContentReader
from stint.services.knowledge.expired_stores import ExpiredStores
from stint.services.knowledge.file_batches import FileBatches
from stint.services.knowledge.ingestion import Ingestion
from stint.services.knowledge.insertions import Insertions
from stint.services.knowledge.search import Search
from stint.services.knowledge.store_documents import StoreDocuments
from stint.services.knowledge.tasks import IngestionTasks
from stint.services.knowledge.usage import UsageCounter
from stint.services.knowledge.vector_stores import TenantVectorStores

if TYPE_CHECKING:
    from stint.bootstrap.knowledge_parts import KnowledgeParts
    from stint.services.knowledge.attribute_updates import AttributeUpdates


@dataclass(frozen=True, slots=True)
class VectorStoreServices:
    """The use cases of a tenant's vector stores."""

    stores: TenantVectorStores
    documents: StoreDocuments
    batches: FileBatches
    insertions: Insertions
    search: Search


def compose_vector_stores(tenant: str, parts: "KnowledgeParts") -> VectorStoreServices:
    """Make the use cases of a tenant."""
    store, deletions = parts.store, parts.deletions
    models, tasks = parts.embedding_models(tenant), IngestionTasks(tenant, parts.send)
    usage, expired = UsageCounter(tenant, store, tasks), ExpiredStores(tenant, store, parts.send)
    search = Search(tenant, store, parts.make_index, models, expired=expired)
    insertions = Insertions(tenant, store, tasks)

    def make_updates() -> "AttributeUpdates":
        from stint.services.knowledge.attribute_updates import AttributeUpdates  # noqa: PLC0415 - rarely needed

        return AttributeUpdates(tenant, store, parts.make_index(), parts.adapters.settings.lease_seconds)

    documents = StoreDocuments(
        tenant,
        store,
        insertions,
        make_updates,
        usage=usage,
        expired=expired,
        deletions=deletions,
        make_index=parts.make_index,
    )
    indexes = parts.adapters.settings.vector_indexes
    stores = TenantVectorStores(
        tenant, store, models, documents, usage=usage, search_in=search, deletions=deletions, indexes=indexes
    )
    batches = FileBatches(tenant, store, documents, usage)
    return VectorStoreServices(stores, documents, batches, insertions, search=search)


def compose_ingestion(tenant: str, parts: "KnowledgeParts") -> Ingestion:
    """Make the worker's use case of a tenant."""
    store, settings = parts.store, parts.adapters.settings
    contents = ContentReader(tenant, store, extract_text)
    writer = ChunkWriter(tenant, parts.make_index(), parts.embedding_models(tenant))
    tasks = IngestionTasks(tenant, parts.send)
    return Ingestion(
        tenant, store, writer, contents, tasks=tasks, meters=parts.meters(tenant), lease_seconds=settings.lease_seconds
    )


async def extract_text(content: bytes, filename: str, mime_type: str | None) -> str:
    """Return the text of a file. Only the worker has the libraries."""
    from stint.documents.files import extract_text as extract  # noqa: PLC0415

    return await extract(content, filename, mime_type)
