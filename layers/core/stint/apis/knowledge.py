"""The use cases of one tenant that the routes of knowledge call."""

from typing import TYPE_CHECKING, ClassVar, TypeAlias, TypeVar

from stint.apis.tenant import TenantServices
from stint.dataclasses import dataclass
from stint.lazy import Lazy, lazy
from stint.services.knowledge.file_batches import FileBatches
from stint.services.knowledge.files import Files
from stint.services.knowledge.store_documents import StoreDocuments
from stint.services.knowledge.uploads import Uploads
from stint.services.knowledge.vector_stores import TenantVectorStores
from stint.spending.meters import Meters

if TYPE_CHECKING:  # loaded by the composition
    from stint.services.knowledge.container_files import ContainerFiles
    from stint.services.knowledge.containers import Containers
    from stint.services.knowledge.embeddings import TextEmbeddings
    from stint.services.knowledge.rag import RAG
    from stint.services.knowledge.rag_insertion import RAGInsertion
    from stint.services.knowledge.vector_dbs import VectorDBs
    from stint.services.knowledge.vector_io import VectorIO

T = TypeVar("T")
Part: TypeAlias = Lazy["KnowledgeServices", T]


@dataclass(frozen=True)
class KnowledgeServices(TenantServices):
    """The use cases."""

    files: Files
    uploads: Uploads
    vector_stores: TenantVectorStores
    store_documents: StoreDocuments
    file_batches: FileBatches
    vector_dbs: "VectorDBs"
    vector_io: "VectorIO"
    rag: "RAG"
    rag_insertion: "RAGInsertion"
    meters: Meters

    embeddings: "ClassVar[Part[TextEmbeddings]]" = lazy(
        "stint.services.knowledge.embeddings:TextEmbeddings", lambda self, cls: cls(self.vector_stores.models)
    )
    container_files: "ClassVar[Part[ContainerFiles]]" = lazy(
        "stint.services.knowledge.container_files:ContainerFiles",
        lambda self, cls: cls(self.tenant, self.store.containers, self.store.files, self.files.deletions.send),
    )
    containers: "ClassVar[Part[Containers]]" = lazy(
        "stint.services.knowledge.containers:Containers",
        lambda self, cls: cls(self.tenant, self.store.containers, self.container_files, self.files.deletions),
    )
