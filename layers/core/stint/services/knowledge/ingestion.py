"""The worker's path of a document: read, divide, embed, index, and make it found."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from stint.domain.errors import (
    Conflict,
    DeadlineExceeded,
    Interrupted,
    InvalidRequest,
    NotFound,
    StintError,
    TooLarge,
)
from stint.domain.ids import hex_of, new_id
from stint.domain.tasks import IngestionTask
from stint.domain.vector_stores import LastError, StoredContent
from stint.loop.lease_keeper import LeaseKeeper, lease_span
from stint.retrieval.port import Entry, VectorIndex
from stint.services.knowledge.attribute_updates import AttributeUpdates
from stint.services.knowledge.contents import Chunk, Content, ContentReader, UnreadableDocument, last_error_of
from stint.services.knowledge.embedding_models import EmbeddingModels
from stint.services.knowledge.entries import chunk_keys, make_entries
from stint.store.document_leases import DocumentLease
from stint.store.knowledge_keys import vector_index
from stint.store.store import Store
from stint.store.stored_documents import StoredDocument
from stint.store.vector_stores import StoredVectorStore

logger = logging.getLogger(__name__)

BATCH = 200
"""Chunks that are embedded and indexed at once."""

FLOAT_BYTES = 4

DocumentKeeper = LeaseKeeper[DocumentLease]


@dataclass(slots=True)
class WrittenChunks:
    """The chunks and the text of a document that an attempt wrote, before they are found."""

    chunks: int
    usage_bytes: int = 0
    text: StoredContent | None = None


@dataclass(frozen=True, slots=True)
class Ingestion:
    """Ingests the documents of a tenant, each under a renewed lease of `lease_seconds`.

    Each attempt writes chunks of its own generation. One write of the document's record makes searches find them, and
    succeeds only if the lease is held and the document was neither cancelled nor deleted. Who loses deletes its chunks.
    """

    tenant: str
    store: Store
    index: VectorIndex
    models: EmbeddingModels
    contents: ContentReader
    lease_seconds: float

    async def handle_task(self, task: IngestionTask, deadline: float, *, last: bool = False) -> None:
        """Handle each document of a task, also if others fail. Raises the first error."""
        errors: list[StintError] = []
        for document in task.documents:
            try:
                await self.handle(task.vector_store_id, document, deadline, last=last)
            except StintError as error:
                errors.append(error)
        if errors:
            raise errors[0]

    async def handle(self, store_id: str, document: str, deadline: float, *, last: bool = False) -> None:
        """Ingest a document that is in progress. It may be repeated at any time.

        Chunks that others left in the index are deleted. `deadline` is a time of the event loop's clock. `last`: no
        attempt follows if this one fails, so that the document fails with it.

        Raises:
            Conflict: another process ingests the document.
            StintError: another attempt may succeed.
        """
        try:
            store = await self.store.vector_stores.get(self.tenant, store_id)
            found = await self.store.vector_store_documents.get(self.tenant, store_id, document)
        except NotFound:
            return
        try:
            if found.status == "in_progress":
                await self.ingest(store, found, deadline)
            elif found.unindexed:
                updates = AttributeUpdates(self.tenant, self.store, self.index, self.lease_seconds)
                await updates.update(store_id, found, found.settings)
            else:
                await self.sweep(store_id, found)
        except (InvalidRequest, TooLarge) as error:
            await self.fail(store_id, found, last_error_of(error))
        except StintError as error:
            if not last or isinstance(error, Conflict):
                raise
            await self.fail(store_id, found, LastError(code="server_error", message=error.message))
            raise

    async def ingest(self, store: StoredVectorStore, found: StoredDocument, deadline: float) -> None:
        try:
            content = await self.contents.read(found.settings)
        except UnreadableDocument as unreadable:
            await self.fail(store.id, found, unreadable.error)
            return
        try:
            keeper = await self.acquire(store.id, found, len(content.chunks), deadline)
        except NotFound:
            return
        except Conflict as conflict:
            if conflict.code == "document_ended":
                return
            raise
        await self.run(store, found, content, keeper)

    async def acquire(self, store_id: str, found: StoredDocument, chunks: int, deadline: float) -> DocumentKeeper:
        asked, span = asyncio.get_running_loop().time(), lease_span(self.lease_seconds, deadline)
        lease = await self.store.document_leases.acquire(self.tenant, store_id, found, hex_of(new_id()), chunks, span)
        if lease.document.settings != found.settings:
            await lease.release()
            raise Interrupted(f"Document {found.key} was replaced while it was read.")
        return LeaseKeeper(lease, self.lease_seconds, deadline, asked + span)

    async def run(
        self, store: StoredVectorStore, found: StoredDocument, content: Content, keeper: DocumentKeeper
    ) -> None:
        """Index a document under its lease, and make it found.

        Raises:
            Interrupted: the lease was lost, and the document is still in progress.
        """
        try:
            written = await self.write_chunks(store, found, content, keeper)
        except Interrupted as interrupted:
            await self.refuse_open(store.id, found.key, interrupted)
            return
        try:
            completed = await keeper.lease.complete(written.usage_bytes, written.text)
        except Interrupted as interrupted:
            await self.undo(store.id, found.key, written, keeper)
            await self.refuse_open(store.id, found.key, interrupted)
            return
        finally:
            keeper.stop()
        if found.text is not None:
            await self.store.vector_store_contents.delete(found.text)
        await self.delete_outdated(store.id, completed)

    async def write_chunks(
        self, store: StoredVectorStore, found: StoredDocument, content: Content, keeper: DocumentKeeper
    ) -> WrittenChunks:
        """Write the chunks and the text of a document. If that fails, nothing of them is left."""
        written = WrittenChunks(len(content.chunks))
        try:
            if content.text is not None:
                body = content.text.encode()
                written.text = await self.store.vector_store_contents.put_text(
                    self.tenant, store.id, found.key, keeper.lease.generation, body
                )
            written.usage_bytes = await self.index_chunks(store, found, content.chunks, keeper)
            keeper.check()
        except BaseException:
            await self.undo(store.id, found.key, written, keeper)
            raise
        return written

    async def refuse_open(self, store_id: str, document: str, interrupted: Interrupted) -> None:
        """Raise an error if a document is still in progress, so that its task is delivered again."""
        logger.info("The ingestion was stopped", extra={"document": document, "reason": interrupted.message})
        found = await self.store.vector_store_documents.find(self.tenant, store_id, [document])
        if document in found and found[document].status == "in_progress":
            raise interrupted

    async def index_chunks(
        self, store: StoredVectorStore, found: StoredDocument, chunks: Sequence[Chunk], keeper: DocumentKeeper
    ) -> int:
        """Embed and index chunks in batches, and return their bytes.

        Raises:
            Interrupted: the lease is lost.
            DeadlineExceeded: the time of the worker is over.
        """
        usage, generation = 0, keeper.lease.generation
        for at in range(0, len(chunks), BATCH):
            refuse_late(keeper)
            batch = chunks[at : at + BATCH]
            entries = list(make_entries(found, generation, at, batch, await self.embed(store, batch)))
            keeper.check()
            await self.upsert(store, entries, keeper)
            usage += sum(len(entry.text.encode()) + FLOAT_BYTES * len(entry.vector) for entry in entries)
        return usage

    async def embed(self, store: StoredVectorStore, chunks: Sequence[Chunk]) -> list[Sequence[float]]:
        """Return the vectors of chunks, made here for those that have none."""
        missing = [chunk.text for chunk in chunks if chunk.vector is None]
        made = iter(await self.models.embed(store.settings.embedding, missing) if missing else [])
        return [next(made) if chunk.vector is None else chunk.vector for chunk in chunks]

    async def upsert(self, store: StoredVectorStore, entries: Sequence[Entry], keeper: DocumentKeeper) -> None:
        """Write chunks, and create the index for the first ones of a store."""
        index = vector_index(self.tenant, store.id)
        try:
            await self.index.upsert(index, entries)
        except NotFound:
            # A store that is being deleted keeps its record until the leases of its documents have ended.
            keeper.check()
            await keeper.lease.renew(lease_span(keeper.seconds, keeper.deadline))
            await self.index.create(index, store.settings.embedding.dimension)
            await self.index.upsert(index, entries)

    async def undo(self, store_id: str, document: str, written: WrittenChunks, keeper: DocumentKeeper) -> None:
        """Delete what an attempt wrote that did not succeed, and release its lease."""
        with suppress(StintError):
            await self.delete_chunks(store_id, document, {keeper.lease.generation: written.chunks})
            if written.text is not None:
                await self.store.vector_store_contents.delete(written.text)
        await keeper.release()

    async def fail(self, store_id: str, found: StoredDocument, error: LastError) -> None:
        logger.warning("The document could not be ingested", extra={"document": found.key, "error": error.message})
        await self.store.vector_store_documents.fail(self.tenant, store_id, found, error)

    async def sweep(self, store_id: str, found: StoredDocument) -> None:
        """Delete the chunks that attempts left behind which were killed."""
        if not found.held:
            await self.delete_outdated(store_id, found)

    async def delete_outdated(self, store_id: str, found: StoredDocument) -> None:
        """Delete the chunks of a document that searches ignore, and the texts of these attempts."""
        await self.delete_chunks(store_id, found.key, found.outdated)
        for generation in found.outdated:
            await self.store.vector_store_contents.delete_text(self.tenant, store_id, found.key, generation)

    async def delete_chunks(self, store_id: str, document: str, generations: Mapping[str, int]) -> None:
        keys = [key for name, count in generations.items() for key in chunk_keys(document, name, count)]
        if keys:
            with suppress(NotFound):
                await self.index.delete(vector_index(self.tenant, store_id), keys)


def refuse_late(keeper: DocumentKeeper) -> None:
    """Raise DeadlineExceeded if the worker has no time for another batch."""
    if asyncio.get_running_loop().time() >= keeper.deadline:
        raise DeadlineExceeded(
            "The time limit of the worker was reached before the file was ingested. Split the file, "
            "or raise WorkerTimeoutSeconds in the template."
        )
