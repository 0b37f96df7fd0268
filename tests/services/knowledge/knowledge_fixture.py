"""A tenant's vector stores with a real table and bucket, a fake queue, and a worker that tests run by hand."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from tests.script_model import deadline
from tests.services.knowledge.killable import Death, KillableIndex, killable_store
from tests.services.knowledge.list_index import ListIndex, WordsEmbedder
from tests.store.conftest import Cloud

from stint.bootstrap.adapters import Adapters
from stint.bootstrap.agents import make_meters
from stint.bootstrap.knowledge import compose_knowledge, delete_knowledge_objects
from stint.bootstrap.knowledge_parts import KnowledgeParts
from stint.bootstrap.vector_stores import compose_ingestion, compose_vector_stores
from stint.domain.errors import StoreUnavailable
from stint.domain.openai.vector_stores import (
    CreateVectorStore,
    CreateVectorStoreFile,
    SearchVectorStore,
    VectorStoreFile,
)
from stint.domain.tasks import MARK_DELAY, DeletionTask, IngestionTask, WaitingTask, WebhookTask
from stint.models.routing import Router
from stint.retrieval.embedder_router import EmbedderRouter
from stint.retrieval.port import Embedder, VectorIndex
from stint.services.deletions import Deletions
from stint.services.knowledge.files import NewFile
from stint.settings import Settings

LEASE_SECONDS = 30.0


@dataclass
class TaskQueue:
    """A queue that keeps its tasks. While `refuses` is true, it raises an error.

    `delayed` has the tasks that are sent before an object is marked, and `early` those that are sent before documents
    are stored.
    """

    delayed: list[DeletionTask] = field(default_factory=list)
    early: list[IngestionTask] = field(default_factory=list)
    ingestions: list[IngestionTask] = field(default_factory=list)
    deletions: list[DeletionTask] = field(default_factory=list)
    refuses: bool = False

    async def send(self, task: IngestionTask | DeletionTask | WaitingTask | WebhookTask) -> None:
        assert not isinstance(task, WaitingTask | WebhookTask)
        if self.refuses:
            raise StoreUnavailable("The queue is down.")
        if isinstance(task, IngestionTask):
            (self.early if task.delay_seconds else self.ingestions).append(task)
        else:
            (self.delayed if task.delay_seconds == MARK_DELAY else self.deletions).append(task)


class KnowledgeFixture:
    """The files and vector stores of a tenant. Two with the same tenant, index and queue are two processes."""

    def __init__(
        self,
        cloud: Cloud,
        tenant: str,
        other: "KnowledgeFixture | None" = None,
        death: Death | None = None,
        settings: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        self.cloud, self.tenant = cloud, tenant
        store = cloud.store if death is None else killable_store(cloud, death)
        self.index: ListIndex = other.index if other else ListIndex()
        self.queue: TaskQueue = other.queue if other else TaskQueue()
        self.embedder = WordsEmbedder()
        index = self.make_index(death)
        chosen = Settings(lease_seconds=LEASE_SECONDS, bucket=cloud.bucket, **settings)
        adapters = Adapters(chosen, router=Router({}, "scripted/demo"), tool_providers={})
        adapters.embedders = EmbedderRouter({"words": self.make_embedder}, "words/four")
        self.deletions = Deletions(delete_knowledge_objects(store, lambda: index), self.queue.send)
        meters = make_meters(tenant, chosen, store)
        parts = KnowledgeParts(adapters, store, lambda: index, self.deletions, self.queue.send, lambda _: meters)
        services = compose_vector_stores(tenant, parts)
        self.stores, self.documents, self.search = services.stores, services.documents, services.search
        self.insertions, self.batches = services.insertions, services.batches
        self.services = compose_knowledge(tenant, parts, services)
        self.files = self.services.files
        self.ingestion = compose_ingestion(tenant, parts)

    def make_index(self, death: Death | None) -> VectorIndex:
        """Return the index of this process."""
        return self.index if death is None else KillableIndex(self.index, death)

    def make_embedder(self) -> Embedder:
        """Return the embedder of this process."""
        return self.embedder

    async def upload(self, text: str, filename: str = "a.txt") -> str:
        return (await self.files.create(NewFile(filename, "assistants"), text.encode())).id

    async def create(self, *texts: str, **fields: Any) -> str:
        """Create a store with files of these texts, run the worker, and return the store's id."""
        file_ids = [await self.upload(text) for text in texts]
        request = CreateVectorStore.model_validate({"file_ids": file_ids} | fields)
        store = await self.stores.create(request)
        await self.work()
        return store.id

    async def add(self, store_id: str, text: str, filename: str = "a.txt", **fields: Any) -> str:
        """Add a new file to a store without running the worker, and return its id."""
        file_id = await self.upload(text, filename)
        await self.attach(store_id, file_id, **fields)
        return file_id

    async def attach(self, store_id: str, file_id: str, **fields: Any) -> VectorStoreFile:
        request = CreateVectorStoreFile.model_validate({"file_id": file_id} | fields)
        return await self.documents.create(store_id, request)

    async def work(self, seconds: float = 30, *, last: bool = False) -> None:
        """Handle all tasks of the queue."""
        tasks, self.queue.ingestions[:] = list(self.queue.ingestions), []
        for task in tasks:
            await self.ingestion.handle_task(task, deadline(seconds), last=last)

    async def finish_deletions(self) -> None:
        """Handle all deletions of the queue, also those that were sent before a mark."""
        tasks = [*self.queue.deletions, *self.queue.delayed]
        self.queue.deletions.clear()
        self.queue.delayed.clear()
        for task in tasks:
            await self.deletions.continue_deletion(task, 30)

    async def find(self, store_id: str, query: str, **fields: Any) -> list[str]:
        """Return the texts that a search finds."""
        request = SearchVectorStore.model_validate({"query": query} | fields)
        page = await self.stores.search(store_id, request)
        return [text.text for result in page.data for text in result.content]

    async def statuses(self, store_id: str) -> list[str]:
        return [file.status for file in (await self.documents.list(store_id, None, None, 100, "asc")).data]

    async def file_of(self, store_id: str) -> str:
        """Return the id of the only file of a store."""
        [file] = (await self.documents.list(store_id, None, None, 100, "asc")).data
        return file.id

    def rest(self) -> list[str]:
        """Return what is left of the tenant's stores: records, objects and entries of the index."""
        records = [item["sk"]["S"] for item in self.cloud.items(self.tenant) if "#file." not in item["pk"]["S"]]
        return [*records, *self.cloud.blobs(self.tenant), *self.index.keys, *self.index.indexes]
