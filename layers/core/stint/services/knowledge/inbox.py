"""Objects that are put into the inbox of the bucket, and become documents of vector stores."""

import logging
import re

from stint.dataclasses import dataclass
from stint.domain.errors import Conflict, NotFound
from stint.domain.vector_stores import DocumentSettings, ObjectContent
from stint.services.knowledge.insertions import Insertions
from stint.services.knowledge.store_documents import StoreDocuments
from stint.store.keys import document_key
from stint.store.store import Store
from stint.store.vector_stores import StoredVectorStore

logger = logging.getLogger(__name__)

ATTEMPTS = 5

OBJECT_KEY = re.compile(r"inbox/(?P<store>vs_[0-9a-f]{32})/(?P<name>.*[^/])", re.DOTALL)
"""`inbox/{vector_store_id}/{name}`. Folders, whose names end with a slash, are not documents."""


@dataclass(frozen=True, slots=True)
class InboxDocuments:
    """Makes the documents of a tenant's vector stores equal to the objects of the inbox."""

    tenant: str
    store: Store
    documents: StoreDocuments
    insertions: Insertions

    async def handle(self, key: str) -> None:
        """Add, replace or delete the document of an object, as the object is now.

        It is read again after each write. So events may arrive late, in any order, more than once, and at the same
        time: the document is equal to the object after the last of them.

        Raises:
            Conflict: the object or its document changes all the time.
        """
        parts = OBJECT_KEY.fullmatch(key)
        if parts is None:
            logger.warning("The object was ignored: its key is not inbox/{vector_store_id}/{name}")
            return
        for _ in range(ATTEMPTS):
            # Events of S3 may be late, repeated and in any order, so an event says only which object to look at.
            seen = await self.store.inbox.find(key)
            if not await self.write(parts["store"], parts["name"], seen):
                return
            # An object that changed during the write has an event of its own, which may have been handled before this
            # write.
            if await self.store.inbox.find(key) == seen:
                return
        raise Conflict(f"Object {key!r} changes all the time. Its event is delivered again.")

    async def write(self, store_id: str, name: str, seen: ObjectContent | None) -> bool:
        """Write or delete the document of an object, and return whether that changed anything."""
        document = inbox_document(name)
        try:
            if seen is not None:
                return await self.put(store_id, document, name, seen)
            await self.documents.open(store_id)
            await self.documents.delete_document(store_id, document)
        except NotFound as missing:
            if seen is not None:
                self.ignore(store_id, missing.message)
            return False
        return True

    async def put(self, store_id: str, document: str, name: str, seen: ObjectContent) -> bool:
        """Ingest an object, unless the store has it already. Attributes of an earlier version stay.

        Raises NotFound if the store does not exist, or is that of a session.
        """
        store = await self.documents.open(store_id)
        if store.expired:
            self.ignore(store_id, "The vector store has expired.")
            return False
        found = (await self.store.vector_store_documents.find(self.tenant, store_id, [document])).get(document)
        if found is not None and found.settings.content == seen and found.status == "completed":
            return False

        def replace(settings: DocumentSettings | None) -> DocumentSettings:
            return (settings or new_settings(name, store, seen)).model_copy(update={"content": seen})

        await self.insertions.insert_one(store_id, document, replace)
        return True

    def ignore(self, store_id: str, reason: str) -> None:
        logger.warning("The object was ignored", extra={"vector_store_id": store_id, "reason": reason})


def inbox_document(name: str) -> str:
    """Return the key of an object's document, which no id of a caller has."""
    return document_key(f"inbox\0{name}")


def new_settings(name: str, store: StoredVectorStore, content: ObjectContent) -> DocumentSettings:
    return DocumentSettings(document_id=name, filename=name, chunking=store.settings.chunking, content=content)
