"""The use cases of one tenant that the routes of knowledge call."""

from dataclasses import dataclass

from stint.services.knowledge.file_batches import FileBatches
from stint.services.knowledge.files import Files
from stint.services.knowledge.store_documents import StoreDocuments
from stint.services.knowledge.uploads import Uploads
from stint.services.knowledge.vector_stores import VectorStoresOfTenant


@dataclass(frozen=True, slots=True)
class KnowledgeServices:
    """The use cases. After `heartbeat_seconds` of silence, a connection gets a heartbeat."""

    files: Files
    uploads: Uploads
    vector_stores: VectorStoresOfTenant
    store_documents: StoreDocuments
    file_batches: FileBatches
    heartbeat_seconds: float
