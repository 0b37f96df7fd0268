"""The worker's path of a document: read, divide, embed, index, and make it found.

An attempt writes chunks of its own generation, which no search finds. Its last write, to the document's record, makes
them found, and succeeds only if the lease is held and the document was neither cancelled, replaced nor deleted.

  an attempt ends by          the record              the chunks                       the next attempt
  completing                  has its generation      are found; older ones deleted    none
  no time left                has its progress        stay                             its own task, from the next chunk
  a fault after some chunks   has its progress        stay                             the same task, delivered again
  a fault before any          is released             are deleted                      the same task, delivered again
  a content that is invalid   has failed              are deleted                      none
  losing the lease            belongs to another      are deleted                      none by this task, unless it is
                                                                                       still in progress
  the death of its process    is leased, then free    named in `generations`           when the task is delivered again

Progress is taken out of the record by the write that acquires the lease, so a generation never has two writers, and a
process that dies while it continues one leaves no progress: the next attempt begins a new generation. `generations` has
the number of chunks of each before they are written, so whoever completes the document can delete the others.

docs/decisions.md, entry 82, has the reasons.
"""

import asyncio
import logging

from stint.caller import acting_as
from stint.dataclasses import dataclass
from stint.domain.errors import (
    Conflict,
    Forbidden,
    Interrupted,
    InvalidRequest,
    NotFound,
    QuotaExceeded,
    StintError,
    TooLarge,
)
from stint.domain.ids import hex_of, new_id
from stint.domain.tasks import IngestionTask
from stint.domain.vector_stores import IngestionProgress, LastError
from stint.loop.lease_keeper import LeaseKeeper, lease_span
from stint.metering import admit_run
from stint.run_stop import ending_on_stop, refuse_stopped
from stint.services.knowledge.attribute_updates import AttributeUpdates
from stint.services.knowledge.chunk_writer import ChunkWriter, DocumentKeeper
from stint.services.knowledge.contents import Content, ContentReader, UnreadableDocument, last_error_of
from stint.services.knowledge.expired_stores import refuse_expired
from stint.services.knowledge.ingestion_attempt import IngestionAttempt
from stint.services.knowledge.tasks import IngestionTasks
from stint.spending.meters import Meters
from stint.spending.waiting import retry_next_minute
from stint.store.store import Store
from stint.store.stored_documents import StoredDocument
from stint.store.vector_stores import StoredVectorStore

logger = logging.getLogger(__name__)

LARGE_BYTES = 1_000_000
"""Size of a content from which its document is leased before it is read. A smaller one saves a write unit."""


@dataclass(frozen=True, slots=True)
class Ingestion:
    """Ingests the documents of a tenant, each under a renewed lease of `lease_seconds`.

    An attempt writes chunks of its own generation. One write of the document's record makes searches find them, and
    succeeds only if the lease is held and the document was neither cancelled nor deleted. If not, the attempt deletes
    its chunks.

    An attempt without enough time notes its progress when it releases the lease. The next one takes the progress out of
    the record when it acquires the lease, and adds to the same generation. So a generation never has two writers.
    """

    tenant: str
    store: Store
    writer: ChunkWriter
    contents: ContentReader
    tasks: IngestionTasks
    meters: Meters
    lease_seconds: float
    """Length of a lease, which is renewed while an attempt runs."""

    async def handle_task(self, task: IngestionTask, deadline: float, *, last: bool = False) -> None:
        """Handle each document of a task for its creator, also if others fail. Raises the first error.

        After half of the time, each of the others is sent in a task of its own. A task is a run, but no request.
        """
        if task.unstarted_only and not (task := await self.without_started(task)).documents:
            return
        with acting_as(task.principal):
            self.meters.begin()
            try:
                await self.handle_documents(task, deadline, last=last)
            finally:
                await self.meters.end()

    async def without_started(self, task: IngestionTask) -> IngestionTask:
        """Return the task without the documents that a worker has begun, or that were not stored: one read."""
        found = await self.store.vector_store_documents.find(self.tenant, task.vector_store_id, task.documents)
        return task.model_copy(update={"documents": [key for key, one in found.items() if one.is_unstarted]})

    async def handle_documents(self, task: IngestionTask, deadline: float, *, last: bool) -> None:
        clock, errors = asyncio.get_running_loop().time, list[StintError]()
        halfway = (clock() + deadline) / 2
        for at, document in enumerate(task.documents):
            # A task has up to ten documents. One large one would take the time of all that follow.
            if at and clock() >= halfway:
                await self.tasks.send_alone(task.vector_store_id, task.documents[at:])
                break
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
        # Deleted since the task was sent: the deletion has a task of its own.
        except NotFound:
            return
        try:
            await self.process_document(store, found, deadline)
        except UnreadableDocument as unreadable:
            await self.fail(store_id, found, unreadable.error)
        except (InvalidRequest, TooLarge) as error:
            await self.fail(store_id, found, last_error_of(error))
        # Trying again does not help: the creator has lost its rights, or spent the budget of the month.
        except (Forbidden, QuotaExceeded) as error:
            await self.fail(store_id, found, LastError(code="server_error", message=error.message))
        except StintError as error:
            # Another attempt follows; or another process has the document, and may complete it.
            if not last or isinstance(error, Conflict):
                raise
            await self.fail(store_id, found, LastError(code="server_error", message=error.message))
            raise

    async def process_document(self, store: StoredVectorStore, found: StoredDocument, deadline: float) -> None:
        """Ingest a document, or write its attributes to the index, or delete what killed attempts left behind."""
        if store.expired and found.status != "in_progress":
            return
        refuse_expired(store)
        if found.status == "in_progress":
            await self.ingest(store, found, deadline)
        elif found.unindexed:
            updates = AttributeUpdates(self.tenant, self.store, self.writer.index, self.lease_seconds)
            await updates.update(store.id, found, found.settings)
        elif not found.held:
            await self.delete_outdated(store.id, found)

    async def ingest(self, store: StoredVectorStore, found: StoredDocument, deadline: float) -> None:
        """Ingest a document, from where an earlier attempt ended or from its first chunk.

        Raises:
            Stopped: an admin stopped the creator's key or the tenant.
            RateLimitExceeded, QuotaExceeded: a budget is used up.
        """
        # Before anything is read, and before the budget is asked.
        await refuse_stopped()
        await retry_next_minute(lambda: admit_run(requests=0), deadline)
        try:
            async with ending_on_stop():
                content = await self.contents.read_again(found)
            if content is not None:
                await self.ingest_content(
                    store, found, content, progress_of(found, len(content.chunks)), deadline=deadline
                )
            else:
                await self.begin(store, found, deadline)
        except NotFound:
            return
        except Conflict as conflict:
            if conflict.code != "document_ended":
                raise

    async def begin(self, store: StoredVectorStore, found: StoredDocument, deadline: float) -> None:
        async with ending_on_stop():
            body, progress = await self.contents.load(found.settings), new_progress()
        # The number of chunks is known at once, and can be noted by the write that acquires the lease.
        if len(body) < LARGE_BYTES:
            content = await self.divide(found, body)
            await self.ingest_content(store, found, content, progress, deadline=deadline)
            return
        keeper = await self.acquire(store.id, found, progress, 0, deadline)
        async with keeper.released_on_error():
            content = await self.divide(found, body)
            keeper.check()
            await keeper.lease.set_chunks(len(content.chunks))
        await self.run(store, found, content, progress, keeper)

    async def divide(self, found: StoredDocument, body: bytes) -> Content:
        """Return the chunks of a document. Raises Stopped, which its thread does not notice."""
        async with ending_on_stop():
            return await self.contents.divide(found.settings, body)

    async def ingest_content(
        self,
        store: StoredVectorStore,
        found: StoredDocument,
        content: Content,
        progress: IngestionProgress,
        deadline: float,
    ) -> None:
        keeper = await self.acquire(store.id, found, progress, len(content.chunks), deadline)
        await self.run(store, found, content, progress, keeper)

    async def acquire(
        self, store_id: str, found: StoredDocument, progress: IngestionProgress, chunks: int, deadline: float
    ) -> DocumentKeeper:
        asked, span = asyncio.get_running_loop().time(), lease_span(self.lease_seconds, deadline)
        leases = self.store.document_leases
        lease = await leases.acquire(self.tenant, store_id, found, progress.generation, chunks=chunks, seconds=span)
        # The lease was acquired for the document as it is now, and what was read is of the one before.
        if lease.document.settings != found.settings:
            await lease.release()
            raise Interrupted(f"Document {found.key} was replaced while it was read.")
        return LeaseKeeper(lease, self.lease_seconds, deadline, asked + span)

    async def run(
        self,
        store: StoredVectorStore,
        found: StoredDocument,
        content: Content,
        progress: IngestionProgress,
        keeper: DocumentKeeper,
    ) -> None:
        """Index a document under its lease, and make it found.

        Raises:
            Interrupted: the lease was lost, and the document is still in progress.
        """
        attempt = IngestionAttempt(
            self.tenant,
            self.store,
            self.writer,
            store,
            document=found,
            content=content,
            progress=progress,
            keeper=keeper,
        )
        try:
            completed = await attempt.run()
        except Interrupted as interrupted:
            await self.refuse_open(store.id, found.key, interrupted)
            return
        # A new task: a repetition of this one would count as a failed delivery.
        if completed is None:
            await self.tasks.send_documents(store.id, [found.key])
            return
        # The text of the generation before, which nobody reads any more.
        if found.text is not None:
            await self.store.vector_store_contents.delete(found.text)
        await self.delete_outdated(store.id, completed)

    async def refuse_open(self, store_id: str, document: str, interrupted: Interrupted) -> None:
        """Raise an error if a document is still in progress, so that its task is delivered again."""
        logger.info("The ingestion was stopped", extra={"document": document, "reason": interrupted.message})
        found = await self.store.vector_store_documents.find(self.tenant, store_id, [document])
        if document in found and found[document].status == "in_progress":
            raise interrupted

    async def fail(self, store_id: str, found: StoredDocument, error: LastError) -> None:
        """Let a document fail, and delete what its attempts have written."""
        logger.warning("The document could not be ingested", extra={"document": found.key, "error": error.message})
        documents = self.store.vector_store_documents
        # First the record: chunks are deleted only of a document that has really failed. Another request may have
        # replaced it.
        await documents.fail(self.tenant, store_id, found, error)
        failed = (await documents.find(self.tenant, store_id, [found.key])).get(found.key)
        if failed is not None and failed.status == "failed":
            await self.delete_outdated(store_id, failed)

    async def delete_outdated(self, store_id: str, found: StoredDocument) -> None:
        """Delete the chunks of a document that searches ignore, and the texts of these attempts."""
        await self.writer.delete(store_id, found.key, found.outdated)
        for generation in found.outdated:
            await self.store.vector_store_contents.delete_text(self.tenant, store_id, found.key, generation)


def progress_of(found: StoredDocument, chunks: int) -> IngestionProgress:
    """Return the progress of a document that has so many chunks, or a new one if it had another number of them."""
    progress = found.progress
    # The number of chunks differs if another version of the code divides the text otherwise.
    if progress is not None and found.generations.get(progress.generation) == chunks:
        return progress.model_copy()
    return new_progress()


def new_progress() -> IngestionProgress:
    return IngestionProgress(generation=hex_of(new_id()))
