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
        key = await self._blobs.put(keys.document_blobs(tenant, store_id, document), body)
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
