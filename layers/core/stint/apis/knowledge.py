"""The use cases of one tenant that the routes of knowledge call."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from stint.dataclasses import dataclass
from stint.services.knowledge.file_batches import FileBatches
from stint.services.knowledge.files import Files
from stint.services.knowledge.store_documents import StoreDocuments
from stint.services.knowledge.uploads import Uploads
from stint.services.knowledge.vector_stores import TenantVectorStores
from stint.spending.meters import Meters

if TYPE_CHECKING:  # loaded by the composition
    from stint.services.idempotency.requests import IdempotentRequests
    from stint.services.knowledge.containers import Containers
    from stint.services.knowledge.embeddings import TextEmbeddings
    from stint.services.knowledge.rag import RAG
    from stint.services.knowledge.rag_insertion import RAGInsertion
    from stint.services.knowledge.vector_dbs import VectorDBs
    from stint.services.knowledge.vector_io import VectorIO


@dataclass(frozen=True, slots=True)
class KnowledgeServices:
    """The use cases. After `heartbeat_seconds` of silence, a connection gets a heartbeat.

    `make_embeddings` and `make_idempotent_requests` make those of embeddings and of idempotency keys once, at the first
    request that needs them.
    """

    files: Files
    make_containers: "Callable[[], Containers]"
    uploads: Uploads
    vector_stores: TenantVectorStores
    store_documents: StoreDocuments
    file_batches: FileBatches
    vector_dbs: "VectorDBs"
    vector_io: "VectorIO"
    rag: "RAG"
    rag_insertion: "RAGInsertion"
    meters: Meters
    heartbeat_seconds: float
    make_embeddings: "Callable[[], TextEmbeddings]"
    make_idempotent_requests: "Callable[[], IdempotentRequests]"
