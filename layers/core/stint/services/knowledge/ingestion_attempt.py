"""One attempt to ingest a document, under its lease.

Chunks are written under a generation of their own, which no search finds until one write of the record names it. So an
attempt that fails halfway has changed nothing that callers see, and what it wrote is either kept for the next attempt
or deleted:

    how it ends                                 chunks    record
    all is written                              found     completed, in one write
    no time after some chunks                   kept      progress, in one write with the release of the lease
    another StintError after some chunks        kept      the same, and the error is raised
    an error before the first chunk             deleted   no progress; the lease is released
    cannot be ingested (invalid, too large)     deleted   no progress; the lease is released
    the worker is stopped, or a fault of ours   deleted   no progress; the lease is released
    lease lost, cancelled, deleted, replaced    deleted   what others have written
"""

from contextlib import suppress

from stint.dataclasses import dataclass
from stint.domain.errors import DeadlineExceeded, Interrupted, InvalidRequest, StintError, TooLarge
from stint.domain.vector_stores import IngestionProgress
from stint.services.knowledge.chunk_writer import ChunkWriter, DocumentKeeper
from stint.services.knowledge.contents import Content
from stint.store.store import Store
from stint.store.stored_documents import StoredDocument
from stint.store.vector_stores import StoredVectorStore


@dataclass(frozen=True, slots=True)
class IngestionAttempt:
    """Writes the chunks of a document from `progress.next_chunk` on."""

    tenant: str
    """The tenant of the document."""
    store: Store
    """The records and contents."""
    writer: ChunkWriter
    """Writes the chunks."""
    vector_store: StoredVectorStore
    """The store of the document."""
    document: StoredDocument
    """The document as it was when it was read."""
    content: Content
    """Its chunks, and its text if that was extracted."""
    progress: IngestionProgress
    """Where this attempt begins. It changes with each batch."""
    keeper: DocumentKeeper
    """Renews the lease."""

    async def run(self) -> StoredDocument | None:
        """Write the chunks and the text, make searches find them, and return the document.

        If the time is over after some chunks, the record has the progress, and the result is None: the caller sends a
        task for the rest. After any other failure, the progress is kept for the next delivery of the same task. If
        there is none to keep, nothing of the attempt is left.

        Raises:
            Interrupted: the lease was lost, or the document was cancelled, deleted or replaced.
            DeadlineExceeded: there was no time for any chunk.
        """
        begun = self.progress.next_chunk
        try:
            await self.write()
        except StintError as error:
            # Nothing is worth keeping, or nobody may continue it.
            if self.progress.next_chunk == 0 or isinstance(error, Interrupted | InvalidRequest | TooLarge):
                await self.undo()
                raise
            # `pause` releases the lease in the same write, so the next attempt finds the progress as soon as it can
            # acquire it.
            await self.pause()
            if isinstance(error, DeadlineExceeded) and self.progress.next_chunk > begun:
                return None
            raise
        except BaseException:
            await self.undo()
            raise
        return await self.complete()

    async def write(self) -> None:
        """Write the text, unless an earlier attempt has, and the chunks."""
        # Before the chunks, so that a later attempt can divide the same text.
        if self.progress.text is None and self.content.text is not None:
            self.progress.text = await self.store.vector_store_contents.put_text(
                self.tenant,
                self.vector_store.id,
                self.document.key,
                self.progress.generation,
                body=self.content.text.encode(),
            )
        await self.writer.write(self.vector_store, self.document, self.content.chunks, self.progress, self.keeper)
        self.keeper.check()

    async def complete(self) -> StoredDocument:
        try:
            return await self.keeper.lease.complete(self.progress.usage_bytes, self.progress.text)
        except Interrupted:
            await self.undo()
            raise
        finally:
            self.keeper.stop()

    async def pause(self) -> None:
        """Note the progress, and release the lease.

        If that fails, the chunks stay, because the answer may have been lost. The record has their generation, so the
        next attempt that completes the document deletes them.
        """
        self.keeper.stop()
        try:
            await self.keeper.lease.pause(self.progress)
        except Interrupted:
            await self.keeper.release()
            raise

    async def undo(self) -> None:
        """Delete what was written, and release the lease."""
        # What cannot be deleted now is in `generations`, and goes with the next attempt or with the document.
        with suppress(StintError):
            chunks = {self.progress.generation: len(self.content.chunks)}
            await self.writer.delete(self.vector_store.id, self.document.key, chunks)
            if self.progress.text is not None:
                await self.store.vector_store_contents.delete(self.progress.text)
        await self.keeper.release()
