"""Files of vector stores: add, read, list, change attributes, delete.

A route reads and writes records only; chunks are written by the worker. The exception is a change of attributes of a
completed file, which writes them to the index before it answers, so that the next search filters by them
(`attribute_updates.py`). Files that are not completed are ingested again with the new attributes.

Reading has two side effects, because nothing else looks at a store regularly: documents whose tasks were lost are sent
again (`usage.py`), and an expired store has its contents deleted.
"""

from collections.abc import AsyncGenerator, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from stint.caller import end_users_of
from stint.dataclasses import dataclass
from stint.domain.errors import Conflict, NotFound, StintError
from stint.domain.filters import Attributes
from stint.domain.openai.vector_stores import (
    CreateVectorStoreFile,
    DeletedVectorStoreFile,
    FileContentPage,
    OtherChunking,
    TextContent,
    UpdateVectorStoreFile,
    VectorStoreFile,
    VectorStoreFileChunkList,
    VectorStoreFileList,
)
from stint.domain.tasks import DeletionTask
from stint.domain.vector_stores import (
    AnyChunking,
    DocumentSettings,
    DocumentStatus,
    FileContent,
    InsertedChunks,
    InsertedText,
    StoredContent,
    WindowChunking,
)
from stint.services.deletions import Deletions
from stint.services.knowledge.expired_stores import ExpiredStores, refuse_expired
from stint.services.knowledge.insertions import Insertions
from stint.services.knowledge.usage import UsageCounter
from stint.store.store import Store
from stint.store.stored_documents import StoredDocument
from stint.store.table import take
from stint.store.vector_stores import Order, StoredVectorStore

if TYPE_CHECKING:
    from stint.retrieval.port import VectorIndex
    from stint.services.knowledge.attribute_updates import AttributeUpdates
    from stint.store.vector_store_contents import VectorStoreContents


@dataclass(frozen=True, slots=True)
class StoreDocuments:
    """The files of a tenant's vector stores. Unknown ids raise NotFound."""

    tenant: str
    """The tenant of the stores."""
    store: Store
    """The records."""
    insertions: Insertions
    """Adds files."""
    make_updates: "Callable[[], AttributeUpdates]"
    """Makes the updates of attributes, which need the index, when one is needed."""
    usage: UsageCounter
    """Sends lost documents again."""
    expired: ExpiredStores
    """Deletes the contents of stores that have expired."""
    deletions: Deletions
    """Starts deletions."""
    make_index: "Callable[[], VectorIndex]"
    """Makes the index, which few requests read."""

    async def prepare(
        self, file_ids: Sequence[str], chunking: AnyChunking, attributes: Attributes | None = None
    ) -> dict[str, DocumentSettings]:
        """Return the settings of documents, by the ids of their files.

        Raises:
            NotFound: one of the files does not exist.
        """
        unique = list(dict.fromkeys(file_ids))
        files = await self.store.files.get_many(self.tenant, unique)
        if missing := [file_id for file_id in unique if file_id not in files]:
            raise NotFound("File", missing[0])
        return {
            file_id: DocumentSettings(
                document_id=file_id,
                filename=files[file_id].filename,
                attributes=attributes or {},
                chunking=chunking,
                content=FileContent(file_id=file_id),
                expires_at=files[file_id].expires_at,
            )
            for file_id in unique
        }

    async def create(self, store_id: str, request: CreateVectorStoreFile) -> VectorStoreFile:
        """Add a file to a store. One that the store has with equal settings stays as it is."""
        store = await self.open(store_id)
        refuse_expired(store)
        chunking = request.chunking_strategy or store.settings.chunking
        documents = await self.prepare([request.file_id], chunking, request.attributes)
        await self.insertions.insert(store_id, documents, users=end_users_of())
        return await self.get(store_id, request.file_id)

    async def open(self, store_id: str) -> StoredVectorStore:
        """Read a store. If it has expired, its contents are deleted. Raises NotFound for that of a session."""
        stored = await self.store.vector_stores.get(self.tenant, store_id)
        if stored.settings.owner is not None:
            raise NotFound("Vector store", store_id)
        await self.expired.delete_contents(stored)
        return stored

    async def get(self, store_id: str, file_id: str) -> VectorStoreFile:
        await self.open(store_id)
        found = await self.store.vector_store_documents.get(self.tenant, store_id, file_id)
        await self.usage.requeue(store_id, [found])
        return to_file(store_id, found)

    async def list(
        self,
        store_id: str,
        after: str | None,
        before: str | None,
        limit: int,
        order: Order,
        status: DocumentStatus | None = None,
        batch_id: str | None = None,
    ) -> VectorStoreFileList:
        """List the files of a store by their ids, all or those with a status, or of a batch."""
        await self.open(store_id)

        async def chosen() -> AsyncGenerator[StoredDocument, None]:
            newest_first = order == "desc"
            async for found in self.store.vector_store_documents.read(
                self.tenant, store_id, after=after, newest_first=newest_first
            ):
                if before is not None and (found.key <= before if newest_first else found.key >= before):
                    return
                wanted = (status in (None, found.status)) and batch_id in (None, found.batch_id)
                if wanted and not found.deleted:
                    yield found

        listed = await take(chosen(), limit + 1)
        await self.usage.requeue(store_id, listed[:limit])
        return VectorStoreFileList.of([to_file(store_id, one) for one in listed[:limit]], len(listed) > limit)

    async def update(self, store_id: str, file_id: str, request: UpdateVectorStoreFile) -> VectorStoreFile:
        """Replace the attributes of a file. If it is completed, filters find them when this returns.

        Otherwise it is ingested again. Raises Conflict if other requests change the file.
        """
        refuse_expired(await self.open(store_id))
        found = await self.store.vector_store_documents.get(self.tenant, store_id, file_id)
        attributes = {"attributes": request.attributes or {}}

        def change(settings: DocumentSettings | None) -> DocumentSettings:
            if settings is None:
                raise NotFound("File", file_id)
            return settings.model_copy(update=attributes)

        if found.status != "completed":
            await self.insertions.insert_one(store_id, found.key, change)
        else:
            await self.update_completed(store_id, found, change(found.settings))
        return await self.get(store_id, file_id)

    async def update_completed(self, store_id: str, found: StoredDocument, settings: DocumentSettings) -> None:
        try:
            await self.make_updates().update(store_id, found, settings)
        # Nothing was written. After another error the index may have the old attributes, and the worker finishes the
        # update.
        except (Conflict, NotFound):
            raise
        except StintError:
            await self.insertions.tasks.send_documents(store_id, [found.key])
            raise

    async def read_content(self, store_id: str, file_id: str) -> FileContentPage:
        """Return the text of a file as it was ingested.

        Raises:
            Conflict: it is not ingested yet, or could not be.
            InvalidRequest: the store has expired.
        """
        refuse_expired(await self.open(store_id))
        found = await self.store.vector_store_documents.get(self.tenant, store_id, file_id)
        settings = found.settings
        texts = [TextContent(text=text) for text in await read_texts(self.store.vector_store_contents, found)]
        return FileContentPage(
            file_id=found.key, filename=settings.filename, attributes=settings.attributes, data=texts, content=texts
        )

    async def list_chunks(
        self, store_id: str, file_id: str, after: str | None, limit: int, order: Order
    ) -> VectorStoreFileChunkList:
        """Return a page of the chunks of a file that searches find. Raises as `read_content`."""
        from stint.services.knowledge.chunk_pages import ChunkPages  # noqa: PLC0415 - few requests read chunks

        store = await self.open(store_id)
        refuse_expired(store)
        return await ChunkPages(self.tenant, self.store, self.make_index()).read(store, file_id, after, limit, order)

    async def delete(self, store_id: str, file_id: str) -> DeletedVectorStoreFile:
        """Remove a file from a store. When this returns, no search finds it. The file itself stays.

        A repeated request finishes the deletion of one that failed.
        """
        await self.open(store_id)
        # Also a marked one, so that a repetition can finish a deletion.
        found = await self.store.vector_store_documents.get_marked(self.tenant, store_id, file_id)
        if found is None or found.expired:
            raise NotFound("File", file_id)
        await self.delete_document(store_id, file_id)
        return DeletedVectorStoreFile(id=file_id)

    async def delete_document(self, store_id: str, document: str) -> None:
        """Delete a document. It may be repeated. Raises NotFound if it does not exist."""
        task = DeletionTask(
            kind="delete_store_document", tenant=self.tenant, vector_store_id=store_id, document=document
        )
        mark = partial(self.store.vector_store_documents.mark_deleted, self.tenant, store_id, document)
        await self.deletions.start_deletion(task, mark)


def to_file(store_id: str, found: StoredDocument) -> VectorStoreFile:
    chunking = found.settings.chunking
    return VectorStoreFile(
        id=found.key,
        created_at=found.created_at,
        vector_store_id=store_id,
        status=found.status,
        last_error=found.last_error,
        usage_bytes=found.usage_bytes,
        attributes=found.settings.attributes,
        chunking_strategy=OtherChunking() if isinstance(chunking, WindowChunking) else chunking,
        filename=found.settings.filename,
    )


async def read_texts(contents: "VectorStoreContents", found: StoredDocument) -> Sequence[str]:
    """Return the text of a document, or those of its chunks. Raises Conflict if its file is not ingested yet."""
    content = found.settings.content
    if isinstance(content, StoredContent) and content.type == "chunks":
        return [one.text for one in InsertedChunks.model_validate_json(await contents.get(content)).chunks]
    if isinstance(content, StoredContent):
        return [InsertedText.model_validate_json(await contents.get(content)).text]
    if found.text is None:
        raise Conflict(f"File {found.key!r} is {found.status}, so its text cannot be read.", code="file_not_ready")
    return [(await contents.get(found.text)).decode()]
