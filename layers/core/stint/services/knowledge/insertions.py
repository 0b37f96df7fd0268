"""Insertion of documents into vector stores: a record in progress, its content, and a task of the worker.

The order of the writes makes an insertion safe against the death of its process, and against other requests:

  1. contents, under keys that no record names yet
  2. a delayed task (`announce`): it ingests what no worker has begun when it arrives
  3. records, and the record of the batch; the condition is that nobody has changed them since they were read
  4. contents that no record names are deleted
  5. the task, which arrives at once

After 1, contents remain until the store is deleted. After 2, the task finds no record, and nothing happens. After 3,
the delayed task finds the document. Without 2, a document whose process died after 3 would be in progress until a
reader finds it lost (`usage.py`).

A document that the store has with equal settings stays as it is, so a request may be repeated. If the condition of 3
fails, everything is read again, ATTEMPTS times.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256

from stint.caller import end_users_of
from stint.dataclasses import dataclass
from stint.domain.errors import Conflict, DeadlineExceeded, InvalidRequest, StintError, StoreUnavailable
from stint.domain.filters import searchable
from stint.domain.vector_stores import (
    AutoChunking,
    DocumentSettings,
    InsertedChunk,
    InsertedChunks,
    InsertedText,
    StoredContent,
    WindowChunking,
    shared_metadata,
)
from stint.retrieval.entries import check_vectors
from stint.services.knowledge.expired_stores import refuse_expired
from stint.services.knowledge.tasks import IngestionTasks
from stint.store.failures import ConditionFailed
from stint.store.items import Item
from stint.store.keys import document_key
from stint.store.store import Store
from stint.store.stored_documents import StoredDocument
from stint.store.vector_stores import StoredVectorStore

ATTEMPTS = 5
"""Attempts to write records that other requests change at the same time."""
POLL_SECONDS = 0.25
"""Seconds between two reads of documents that a caller waits for."""


@dataclass(frozen=True, slots=True)
class NewText:
    """A text that a caller inserts in place of a document with its id. `metadata` is returned with its chunks.

    `entities` are those that it names, if they link documents.
    """

    document_id: str
    text: str
    metadata: Mapping[str, object]
    filename: str = ""
    entities: Sequence[str] | None = None


@dataclass(frozen=True, slots=True)
class Insertions:
    """Inserts documents into the vector stores of a tenant. The worker makes them found."""

    tenant: str
    store: Store
    tasks: IngestionTasks

    async def insert_texts(
        self, store_id: str, texts: Sequence[NewText], chunking: WindowChunking, expires_at: int | None = None
    ) -> list[str]:
        """Insert texts, and return the keys of their documents. Raises NotFound if the store does not exist."""
        store = await self.open(store_id)
        documents: dict[str, DocumentSettings] = {}
        for text in texts:
            key, body = document_key(text.document_id), InsertedText(text=text.text).to_json()
            documents[key] = DocumentSettings(
                document_id=text.document_id,
                filename=text.filename,
                attributes=searchable(text.document_id, text.metadata),
                metadata=dict(text.metadata),
                chunking=chunking,
                expires_at=expires_at,
                entities=None if text.entities is None else list(text.entities),
                content=await self.store.vector_store_contents.put(self.tenant, store_id, key, body),
            )
        return await self.insert(store_id, documents, users=owners_in(store))

    async def insert_chunks(self, store_id: str, chunks: Mapping[str, Sequence[InsertedChunk]]) -> list[str]:
        """Insert chunks by the ids of their documents, and return the keys of the records.

        The same chunks of a document replace each other, and others are added to it.

        Raises:
            NotFound: the store does not exist.
            InvalidRequest: a vector has not the store's dimension.
        """
        store = await self.open(store_id)
        documents: dict[str, DocumentSettings] = {}
        for document_id, own in chunks.items():
            check_vectors([one.embedding for one in own], store.settings.embedding.dimension)
            # The key depends on the texts, so that the same chunks of a document replace each other.
            digest = sha256("\0".join(sorted(sha256(one.text.encode()).hexdigest() for one in own)).encode())
            key, body = document_key(f"{document_id}\0{digest.hexdigest()}"), InsertedChunks(chunks=list(own))
            documents[key] = DocumentSettings(
                document_id=document_id,
                attributes=searchable(document_id, shared_metadata(own)),
                chunking=AutoChunking(),
                content=await self.store.vector_store_contents.put(
                    self.tenant, store_id, key, body.to_json(), "chunks"
                ),
            )
        return await self.insert(store_id, documents, users=owners_in(store))

    async def open(self, store_id: str) -> StoredVectorStore:
        """Read a store. Raises InvalidRequest if it has expired."""
        store = await self.store.vector_stores.get(self.tenant, store_id)
        refuse_expired(store)
        return store

    async def insert(
        self,
        store_id: str,
        documents: Mapping[str, DocumentSettings],
        batch: Item | None = None,
        users: Sequence[str] = (),
    ) -> list[str]:
        """Add documents, or ingest them again, send their tasks, and return their keys. They belong to `users`, too."""
        try:
            owners: Item = {}
            if users:
                owners = await self.store.document_owners.add(self.tenant, store_id, documents, users)
            records = await self.put(store_id, documents, batch, owners)
        except StoreUnavailable:  # a write without an answer may have stored records that name the contents
            raise
        # Records that were written before the error have their tasks sent, and keep their contents.
        except StintError:
            found = await self.store.vector_store_documents.find(self.tenant, store_id, list(documents))
            await self.follow(store_id, documents, found)
            raise
        await self.follow(store_id, documents, records)
        return list(records)

    async def follow(
        self, store_id: str, documents: Mapping[str, DocumentSettings], records: Mapping[str, StoredDocument]
    ) -> None:
        """Delete the contents that no record names, and send the tasks of what is in progress."""
        await self.delete_unused(documents, records)
        await self.tasks.send_documents(store_id, [key for key, one in records.items() if one.status == "in_progress"])

    async def delete_unused(
        self, documents: Mapping[str, DocumentSettings], records: Mapping[str, StoredDocument]
    ) -> None:
        """Delete the contents of documents that no record names."""
        for key, settings in documents.items():
            used = key in records and records[key].settings.content == settings.content
            if isinstance(settings.content, StoredContent) and not used:
                await self.store.vector_store_contents.delete(settings.content)

    async def insert_one(
        self, store_id: str, document: str, make: Callable[[DocumentSettings | None], DocumentSettings]
    ) -> None:
        """Add a document, or ingest it again, with settings made of those that it has at that moment.

        Raises Conflict if other requests change it all the time.
        """
        documents = self.store.vector_store_documents
        for _ in range(ATTEMPTS):
            found = (await documents.find(self.tenant, store_id, [document])).get(document)
            settings = make(None if found is None else found.settings)
            if found is None or not found.is_ingested_with(settings):
                await self.tasks.announce(store_id, [document])
            try:
                if found is None:
                    stored = (await documents.add(self.tenant, store_id, {document: settings}))[document]
                else:
                    stored = await self.put_again(store_id, found, settings, None)
            except ConditionFailed:
                continue
            if stored.status == "in_progress":
                await self.tasks.send_documents(store_id, [document])
            return
        raise refused(store_id)

    async def put(
        self,
        store_id: str,
        documents: Mapping[str, DocumentSettings],
        batch: Item | None = None,
        owners: Item | None = None,
    ) -> dict[str, StoredDocument]:
        """Write the records of documents. One that the store has with equal settings stays, unless it has failed.

        Several requests may add the same ones: each is added once. The record of the batch is written once, too. Their
        delayed tasks are sent before, in case this process dies after the write.
        """
        stored, missing = self.store.vector_store_documents, batch
        batch_id = None if batch is None else str(batch["sk"]).partition(":")[2]
        announced: set[str] = set()
        for _ in range(ATTEMPTS):
            found = await stored.find(self.tenant, store_id, list(documents))
            new = {key: settings for key, settings in documents.items() if key not in found}
            # Only what will be ingested needs a task.
            changed = {key for key, one in documents.items() if key in new or not found[key].is_ingested_with(one)}
            await self.tasks.announce(store_id, sorted(changed - announced))
            announced |= changed
            try:
                if new or missing is not None:
                    found |= await stored.add(self.tenant, store_id, new, batch_id, missing, owners)
                    missing = None
                for key, settings in documents.items():
                    if key not in new:
                        if owners:
                            await self.store.document_owners.merge(self.tenant, store_id, found[key], owners)
                        found[key] = await self.put_again(store_id, found[key], settings, batch_id)
            except ConditionFailed:
                # The batch may have been stored by a write whose answer was lost, or by an earlier attempt of this
                # request.
                missing = None if missing and await self.store.file_batches.exists(missing) else missing
                continue
            return {key: found[key] for key in documents}
        raise refused(store_id)

    async def put_again(
        self, store_id: str, found: StoredDocument, settings: DocumentSettings, batch_id: str | None
    ) -> StoredDocument:
        """Ingest a document again, if it has other settings or was not completed."""
        documents = self.store.vector_store_documents
        if found.is_ingested_with(settings):
            if batch_id is not None:
                await documents.set_batch(self.tenant, store_id, found.key, batch_id)
            return found
        replaced = await documents.replace(self.tenant, store_id, found, settings, batch_id=batch_id or found.batch_id)
        # After the record that names the new content was written.
        if isinstance(old := found.settings.content, StoredContent) and old != settings.content:
            await self.store.vector_store_contents.delete(old)
        return replaced

    async def wait(self, store_id: str, documents: Sequence[str], deadline: float) -> None:
        """Wait until documents can be found. `deadline` is a time of the event loop's clock.

        Raises:
            InvalidRequest: one of them could not be ingested. The message has the reason.
            DeadlineExceeded: the worker is still ingesting them.
        """
        clock, waiting = asyncio.get_running_loop().time, list(documents)
        while True:
            found = await self.store.vector_store_documents.find(self.tenant, store_id, waiting)
            waiting = [key for key in waiting if is_waiting(found.get(key))]
            if not waiting:
                return
            if clock() + POLL_SECONDS >= deadline:
                raise DeadlineExceeded(
                    f"{len(waiting)} documents of vector store {store_id!r} are still being ingested by the worker, "
                    f"which goes on: {', '.join(waiting[:3])}. Query the store later."
                )
            await asyncio.sleep(POLL_SECONDS)


def owners_in(store: StoredVectorStore) -> Sequence[str]:
    """Return the end users of what a request inserts. The documents of a session's own store belong to the session."""
    return () if store.settings.owner is not None else end_users_of()


def refused(store_id: str) -> Conflict:
    return Conflict(f"Other requests change the same files of vector store {store_id!r}. Try again.")


def is_waiting(document: StoredDocument | None) -> bool:
    """Return whether a document is in progress. Raises StintError if it failed, InvalidRequest if it is unreadable."""
    if document is None or document.status in ("completed", "cancelled"):
        return False
    if document.status == "failed" and document.last_error is not None:
        name, error = document.settings.document_id, document.last_error
        kind = StintError if error.code == "server_error" else InvalidRequest
        raise kind(f"Document {name!r} could not be ingested: {error.message}", code=error.code)
    return True
