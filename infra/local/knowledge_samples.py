"""The files, uploads, vector stores and vector dbs that the files in `events/` refer to."""

from infra.local.fixed_ids import deadline, fixed_ids
from infra.local.sample_bodies import INSERTED_CHUNKS, INSERTED_DOCUMENTS, VECTOR_DB_REGISTRATION
from infra.local.sample_ids import (
    CANCELLED_UPLOAD,
    CONTAINER,
    CONTAINER_FILE,
    DELETED_FILE,
    FILE,
    FILE_BATCH,
    UPLOAD,
    UPLOAD_PART,
    VECTOR_DB_STORE,
    VECTOR_STORE,
    VECTOR_STORES,
)

from stint.bootstrap.adapters import Adapters
from stint.bootstrap.agents import make_meters
from stint.bootstrap.knowledge import compose_knowledge
from stint.bootstrap.knowledge_parts import KnowledgeParts
from stint.bootstrap.vector_stores import compose_ingestion, compose_vector_stores
from stint.domain.ids import TENANT
from stint.domain.llama_stack.rag import RAGInsertRequest
from stint.domain.llama_stack.vector_dbs import VectorDBRegisterRequest
from stint.domain.llama_stack.vector_io import ChunkInsertRequest
from stint.domain.openai.containers import CreateContainer
from stint.domain.openai.uploads import CreateUpload
from stint.domain.openai.vector_stores import CreateFileBatch, CreateVectorStore
from stint.domain.tasks import DeletionTask, IngestionTask, WaitingTask, WebhookTask
from stint.retrieval.port import VectorIndex
from stint.services.deletions import Deletions
from stint.services.knowledge.files import NewFile
from stint.services.registry.registry import Registry
from stint.store.store import Store


class KnowledgeSamples:
    """The use cases that make the samples. What they insert is ingested at once."""

    def __init__(
        self, adapters: Adapters, store: Store, index: VectorIndex, deletions: Deletions, registry: Registry
    ) -> None:
        meters = make_meters(TENANT, adapters.settings, store)
        parts = KnowledgeParts(
            adapters,
            store,
            lambda: index,
            deletions,
            send=self.send,
            meters=lambda _: meters,
            get_registry=lambda _: registry,
        )
        self.services = compose_knowledge(TENANT, parts, compose_vector_stores(TENANT, parts))
        self.ingestion = compose_ingestion(TENANT, parts)

    async def send(self, task: DeletionTask | IngestionTask | WaitingTask | WebhookTask) -> None:
        if isinstance(task, IngestionTask) and not task.delay_seconds:
            await self.ingestion.handle_task(task, deadline())

    async def make(self) -> None:
        await self.make_files()
        await self.make_container()
        await self.make_vector_stores()
        await self.make_vector_db()

    async def make_files(self) -> None:
        for file_id in (FILE, DELETED_FILE):
            with fixed_ids(file_id):
                await self.services.files.create(NewFile("llamas.txt", "assistants"), b"Llamas live in the Andes.")
        request = {"bytes": 26, "filename": "llamas.txt", "mime_type": "text/plain", "purpose": "assistants"}
        for upload_id in (UPLOAD, CANCELLED_UPLOAD):
            with fixed_ids(upload_id):
                await self.services.uploads.create(CreateUpload.model_validate(request))
        with fixed_ids(UPLOAD_PART):
            await self.services.uploads.add_part(UPLOAD, b"Llamas live in the Andes.\n")
        await self.services.uploads.cancel(CANCELLED_UPLOAD)

    async def make_container(self) -> None:
        with fixed_ids(CONTAINER, CONTAINER_FILE):
            await self.services.containers.create(CreateContainer(name="Llamas", file_ids=[FILE]))

    async def make_vector_stores(self) -> None:
        for store_id in VECTOR_STORES:
            with fixed_ids(store_id):
                await self.services.vector_stores.create(CreateVectorStore(name="Animals"))
        with fixed_ids(FILE_BATCH):
            await self.services.file_batches.create(VECTOR_STORE, CreateFileBatch(file_ids=[FILE]))

    async def make_vector_db(self) -> None:
        with fixed_ids(VECTOR_DB_STORE):
            await self.services.vector_dbs.register(VectorDBRegisterRequest.model_validate(VECTOR_DB_REGISTRATION))
        insertion = self.services.rag_insertion
        await insertion.insert_documents(RAGInsertRequest.model_validate(INSERTED_DOCUMENTS), deadline())
        await insertion.insert_chunks(ChunkInsertRequest.model_validate(INSERTED_CHUNKS), deadline())
