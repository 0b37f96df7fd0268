"""The texts of documents of vector stores, in the bucket."""

from hashlib import sha256
from typing import Literal

from stint.domain.errors import NotFound
from stint.domain.vector_stores import StoredContent
from stint.store import knowledge_keys as keys
from stint.store.blobs import Blobs
from stint.store.failures import BlobMissing


class VectorStoreContents:
    """Objects below the prefix of their document, which its deletion empties."""

    def __init__(self, blobs: Blobs) -> None:
        self._blobs = blobs

    async def put(
        self, tenant: str, store_id: str, document: str, body: bytes, kind: Literal["text", "chunks"] = "text"
    ) -> StoredContent:
        """Store a body, and return what its document's record has of it."""
        return await self._put(keys.document_blobs(tenant, store_id, document), body, kind, None)

    async def put_text(self, tenant: str, store_id: str, document: str, generation: str, body: bytes) -> StoredContent:
        """Store the text that an attempt extracted, under the name of its generation."""
        return await self._put(keys.document_blobs(tenant, store_id, document), body, "text", generation)

    async def delete_text(self, tenant: str, store_id: str, document: str, generation: str) -> None:
        """Delete the text that an attempt extracted, if there is one."""
        await self._blobs.delete(keys.document_blobs(tenant, store_id, document) + generation)

    async def _put(self, prefix: str, body: bytes, kind: Literal["text", "chunks"], name: str | None) -> StoredContent:
        key = await self._blobs.put(prefix, body, name)
        return StoredContent(type=kind, blob=key, length=len(body), sha256=sha256(body).hexdigest())

    async def get(self, content: StoredContent) -> bytes:
        """Return a body. Raises NotFound if it was deleted."""
        try:
            return await self._blobs.get(content.blob, content.length, bytes.fromhex(content.sha256))
        except BlobMissing as error:
            raise NotFound("Document", content.blob) from error

    async def delete(self, content: StoredContent) -> None:
        await self._blobs.delete(content.blob)

    async def delete_document(self, tenant: str, store_id: str, document: str) -> None:
        """Delete all objects of a document."""
        async for _ in self._blobs.delete_prefix(keys.document_blobs(tenant, store_id, document)):
            pass

    async def delete_store(self, tenant: str, store_id: str) -> None:
        """Delete all objects of a store."""
        async for _ in self._blobs.delete_prefix(keys.vector_store_blobs(tenant, store_id)):
            pass
