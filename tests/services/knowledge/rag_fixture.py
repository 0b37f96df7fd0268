"""A tenant's vector dbs and agents, with a worker that ingests what is sent to the queue."""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tests.script_model import Script, deadline
from tests.services.knowledge.list_index import ListIndex
from tests.services.turn_fixture import TurnFixture
from tests.store.conftest import Cloud

from stint.bootstrap.rag import compose_rag
from stint.domain.llama_stack.rag import RAGInsertRequest, RAGQueryConfig
from stint.domain.llama_stack.vector_dbs import VectorDB, VectorDBRegisterRequest
from stint.domain.tasks import DeletionTask
from stint.retrieval.port import VectorIndex
from stint.retrieval.routed import RoutedIndex
from stint.services.knowledge.chunk_writer import ChunkWriter
from stint.services.knowledge.contents import ContentReader
from stint.services.knowledge.embedding_models import EmbeddingModels
from stint.services.knowledge.ingestion import Ingestion
from stint.services.knowledge.removal import Removal
from stint.services.knowledge.tasks import IngestionTasks


class RAGFixture:
    """Vector dbs, and a session of an agent. The index is in memory, the embedder knows words only.

    With `second`, there is another index, whose provider is s3-vectors.
    """

    def __init__(self, cloud: Cloud, tenant: str, model: Script, second: ListIndex | None = None) -> None:
        self.cloud, self.tenant, self.model, self.index = cloud, tenant, model, ListIndex()
        more: dict[str, Any] = {"second_vector_index": "s3-vectors"} if second is not None else {}
        self.fixture = TurnFixture(cloud.store, tenant, model, embedding_model="hashed/words-384", **more)
        self.any_index: VectorIndex = self.index
        if second is not None:
            self.any_index = RoutedIndex({"packed": self.index, "s3-vectors": second}, "packed")
        adapters, self.inbox = self.fixture.adapters, self.fixture.inbox
        vars(adapters)["vector_index"] = self.any_index
        self.services = compose_rag(tenant, adapters, cloud.store, self.inbox.send)
        self.dbs = self.services.vector_dbs
        contents = ContentReader(tenant, cloud.store, nothing)
        writer = ChunkWriter(tenant, self.any_index, EmbeddingModels(adapters.embedders))
        tasks = IngestionTasks(tenant, self.inbox.send)
        self.ingestion = Ingestion(
            tenant, cloud.store, writer, contents, tasks, self.fixture.services.meters, lease_seconds=30
        )
        self.working: set[asyncio.Task[None]] = set()
        self.inbox.on_ingestion = self.start_work

    def start_work(self) -> None:
        task = asyncio.create_task(self.work())
        self.working.add(task)
        task.add_done_callback(self.working.discard)

    async def work(self) -> None:
        """Ingest what is in the queue."""
        tasks, self.inbox.ingestions[:] = list(self.inbox.ingestions), []
        for task in tasks:
            for document in task.documents:
                await self.ingestion.handle(task.vector_store_id, document, deadline(30), last=False)

    @contextmanager
    def idle(self) -> Iterator[None]:
        """Keep tasks in the queue."""
        self.inbox.on_ingestion = None
        yield
        self.inbox.on_ingestion = self.start_work

    async def register(self, name: str, **fields: Any) -> VectorDB:
        request = {"vector_db_id": name, "embedding_model": "all-MiniLM-L6-v2"} | fields
        return await self.dbs.register(VectorDBRegisterRequest.model_validate(request))

    async def insert(self, name: str, texts: Mapping[str, str], seconds: float = 30) -> None:
        documents = [
            {"document_id": document_id, "content": text, "metadata": {"source": "test"}}
            for document_id, text in texts.items()
        ]
        request = RAGInsertRequest.model_validate({"documents": documents, "vector_db_id": name})
        await self.services.rag_insertion.insert_documents(request, deadline(seconds))

    async def query(self, content: str, *names: str, **config: Any) -> list[str]:
        """Return the texts of the context."""
        result = await self.services.rag.query(content, names, RAGQueryConfig.model_validate(config))
        return [item.text for item in result.content or []]

    async def remove_store(self, store_id: str) -> None:
        """Delete what is left of a store that is marked as deleted."""
        task = DeletionTask(kind="delete_vector_store", tenant=self.tenant, vector_store_id=store_id)
        assert await Removal(self.cloud.store, lambda: self.any_index).delete_store(task, deadline(30))

    async def finish_deletions(self) -> None:
        """Delete the vector stores whose deletion was sent to the queue."""
        removal = Removal(self.cloud.store, lambda: self.any_index)
        early = [task for task in self.inbox.delayed if task.object_kind == "vector_store"]
        tasks = [*self.inbox.tasks, *early]
        self.inbox.tasks.clear()
        self.inbox.delayed.clear()
        for task in tasks:
            assert task.object_kind == "vector_store"
            assert await removal.delete_store(task, deadline(30))

    def rest(self) -> list[str]:
        """Return what is left of the tenant: records, objects and entries of the index."""
        records = [item["sk"]["S"] for item in self.cloud.items(self.tenant)]
        return [*records, *self.cloud.blobs(self.tenant), *self.index.keys, *self.index.indexes]


async def nothing(*_: Any) -> Any:
    raise AssertionError("only texts and chunks are inserted here")
