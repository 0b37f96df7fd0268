"""A tenant's vector stores with a real table and bucket, a fake queue, and a worker that tests run by hand."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from tests.script_model import deadline
from tests.services.knowledge.list_index import ListIndex, WordsEmbedder
from tests.store.conftest import Cloud

from stint.bootstrap.vector_stores import compose_ingestion, compose_vector_stores
from stint.domain.errors import InvalidRequest, NotFound, StoreUnavailable
from stint.domain.ids import hex_of, new_id
from stint.domain.openai.vector_stores import (
    CreateVectorStore,
    CreateVectorStoreFile,
    SearchVectorStore,
    VectorStoreFile,
)
from stint.domain.tasks import DeletionTask, IngestionTask, ObjectKind
from stint.domain.vector_stores import ObjectContent
from stint.retrieval.embedder_router import EmbedderRouter
from stint.services.deletions import DeleteObject, Deletions
from stint.services.knowledge.contents import FileBody
from stint.services.knowledge.removal import Removal


@dataclass
class TaskQueue:
    """A queue that keeps its tasks. While `refuses` is true, it raises an error."""

    ingestions: list[IngestionTask] = field(default_factory=list)
    deletions: list[DeletionTask] = field(default_factory=list)
    refuses: bool = False

    async def send(self, task: IngestionTask | DeletionTask) -> None:
        if self.refuses:
            raise StoreUnavailable("The queue is down.")
        (self.ingestions if isinstance(task, IngestionTask) else self.deletions).append(task)  # type: ignore[arg-type]  # by the class


class KnowledgeFixture:
    """The files and vector stores of a tenant. Two with the same tenant, index and queue are two processes."""

    def __init__(self, cloud: Cloud, tenant: str, other: "KnowledgeFixture | None" = None, lease: float = 30) -> None:
        self.cloud, self.tenant = cloud, tenant
        self.index: ListIndex = other.index if other else ListIndex()
        self.queue: TaskQueue = other.queue if other else TaskQueue()
        self.files: dict[str, FileBody] = other.files if other else {}
        self.embedder = WordsEmbedder()
        router = EmbedderRouter({"words": lambda: self.embedder}, "words/four")
        removal = Removal(cloud.store, lambda: self.index)
        kinds: dict[ObjectKind, DeleteObject] = {
            "vector_store": removal.delete_store,
            "store_document": removal.delete_document,
        }
        self.deletions = Deletions(kinds, self.queue.send)
        services = compose_vector_stores(
            tenant, cloud.store, self.index, router, self.deletions, self.queue.send, self.find_file
        )
        self.stores, self.documents, self.search = services.stores, services.documents, services.search
        self.insertions = services.insertions
        self.ingestion = compose_ingestion(
            tenant, cloud.store, self.index, router, lease, self.read_file, self.read_object, self.extract_text
        )

    def upload(self, text: str, filename: str = "a.txt") -> str:
        file_id = f"file-{hex_of(new_id())}"
        self.files[file_id] = FileBody(text.encode(), filename)
        return file_id

    async def find_file(self, file_id: str) -> str:
        return (await self.read_file(file_id)).filename

    async def read_file(self, file_id: str) -> FileBody:
        if file_id not in self.files:
            raise NotFound("File", file_id)
        return self.files[file_id]

    async def read_object(self, content: ObjectContent) -> FileBody:
        return FileBody(content.key.encode(), content.key)

    async def extract_text(self, body: bytes, filename: str, mime_type: str | None) -> str:
        if filename.endswith(".exe"):
            raise InvalidRequest("Files of type .exe are not supported.", code="unsupported_file")
        return body.decode()

    async def create(self, *texts: str, **fields: Any) -> str:
        """Create a store with files of these texts, run the worker, and return the store's id."""
        file_ids = [self.upload(text) for text in texts]
        request = CreateVectorStore.model_validate({"file_ids": file_ids} | fields)
        store = await self.stores.create(request)
        await self.work()
        return store.id

    async def add(self, store_id: str, text: str, filename: str = "a.txt", **fields: Any) -> str:
        """Add a new file to a store without running the worker, and return its id."""
        file_id = self.upload(text, filename)
        await self.attach(store_id, file_id, **fields)
        return file_id

    async def attach(self, store_id: str, file_id: str, **fields: Any) -> VectorStoreFile:
        request = CreateVectorStoreFile.model_validate({"file_id": file_id} | fields)
        return await self.documents.create(store_id, request)

    async def work(self, seconds: float = 30, *, last: bool = False) -> None:
        """Handle all tasks of the queue."""
        tasks, self.queue.ingestions[:] = list(self.queue.ingestions), []
        for task in tasks:
            for document in task.documents:
                await self.ingestion.handle(task.vector_store_id, document, deadline(seconds), last=last)

    async def finish_deletions(self) -> None:
        tasks, self.queue.deletions[:] = list(self.queue.deletions), []
        for task in tasks:
            await self.deletions.continue_deletion(task, 30)

    async def find(self, store_id: str, query: str, **fields: Any) -> list[str]:
        """Return the texts that a search finds."""
        request = SearchVectorStore.model_validate({"query": query} | fields)
        page = await self.stores.search(store_id, request)
        return [text.text for result in page.data for text in result.content]

    async def statuses(self, store_id: str) -> list[str]:
        return [file.status for file in (await self.documents.list(store_id, None, None, 100, "asc")).data]

    def rest(self, spare: Iterable[str] = ()) -> list[str]:
        """Return what is left of the tenant: records, objects and entries of the index."""
        records = [item["sk"]["S"] for item in self.cloud.items(self.tenant)]
        return [*records, *self.cloud.blobs(self.tenant), *self.index.keys, *self.index.indexes]
