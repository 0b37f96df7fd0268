"""Pages of the chunks of a document, as searches find them.

A chunk's key is made of its number, so a page reads its own chunks and no others. The number of chunks is in the
record, and the texts are in the index: dividing the document's text again may give others with another version.
"""

from collections.abc import Sequence

from stint.dataclasses import dataclass
from stint.domain.errors import Conflict, InvalidRequest, NotFound
from stint.domain.openai.vector_stores import VectorStoreFileChunk, VectorStoreFileChunkList
from stint.domain.paging import MAX_BYTES, carried_size
from stint.retrieval.port import Hit, VectorIndex
from stint.services.knowledge.entries import chunk_key
from stint.services.knowledge.index_provider import index_of
from stint.store.store import Store
from stint.store.stored_documents import StoredDocument
from stint.store.vector_stores import Order, StoredVectorStore

ATTEMPTS = 3
"""Reads of a page whose document is ingested again meanwhile."""


@dataclass(frozen=True, slots=True)
class ChunkPages:
    """Reads the chunks of the documents of a tenant."""

    tenant: str
    store: Store
    index: VectorIndex

    async def read(
        self, store: StoredVectorStore, file_id: str, after: str | None, limit: int, order: Order
    ) -> VectorStoreFileChunkList:
        """Return a page of the chunks of a file by their numbers: up to `limit`, and at least one however large it is.

        Raises:
            NotFound: the store does not have the file.
            Conflict: it has no chunks yet, or is being ingested again.
            InvalidRequest: `after` is not the id of a chunk of this file.
        """
        for _ in range(ATTEMPTS):
            found = await self.store.vector_store_documents.get(self.tenant, store.id, file_id)
            total = count_of(found)
            numbers = numbers_after(None if after is None else number_of(file_id, after), total, order)
            wanted = numbers[:limit]
            hits = await self.get(store, found, wanted)
            # Chunks are missing if the document was ingested again after its record was read.
            if len(hits) == len(wanted):
                break
        if wanted and not hits:  # without a last one, the client could not ask for the next page
            raise Conflict(f"File {file_id!r} is being ingested again. Try again.", code="file_not_ready")
        chunks = fitting([to_chunk(file_id, number, hit) for number, hit in hits.items()])
        has_more = bool(chunks) and chunks[-1].index != numbers[-1]
        listed = VectorStoreFileChunkList.of(chunks, has_more=has_more)
        listed.total = total
        return listed

    async def get(self, store: StoredVectorStore, found: StoredDocument, numbers: Sequence[int]) -> dict[int, Hit]:
        """Return chunks by their numbers, in the order of these. Missing ones are omitted."""
        keys = {number: chunk_key(found.key, found.generation or "", number) for number in numbers}
        try:
            hits = await self.index.get(index_of(self.tenant, store), list(keys.values())) if keys else {}
        except NotFound:
            hits = {}
        return {number: hits[key] for number, key in keys.items() if key in hits}


def numbers_after(start: int | None, total: int, order: Order) -> range:
    """Return the numbers of the chunks that follow one in an order; of all, if `start` is None."""
    if order == "asc":
        return range(0 if start is None else start + 1, total)
    return range((total if start is None else min(start, total)) - 1, -1, -1)


def count_of(found: StoredDocument) -> int:
    """Return the number of the chunks that searches find. Raises Conflict if there are none yet."""
    if found.generation is None:
        message = f"File {found.key!r} is {found.status}, so its chunks cannot be read."
        raise Conflict(message, code="file_not_ready")
    return found.generations.get(found.generation, 0)


def number_of(file_id: str, chunk_id: str) -> int:
    """Return the number of a chunk. Raises InvalidRequest if its id is not of this file."""
    number = chunk_id.removeprefix(f"{file_id}:")
    if number == chunk_id or not (number.isascii() and number.isdecimal()) or len(number) > 9:
        message = f"{chunk_id[:100]!r} is not a chunk of the file. Use the last_id of the page before."
        raise InvalidRequest(message, param="after")
    return int(number)


def to_chunk(file_id: str, number: int, hit: Hit) -> VectorStoreFileChunk:
    tokens = hit.metadata.get("token_count")
    return VectorStoreFileChunk(
        id=f"{file_id}:{number}",
        index=number,
        text=hit.text,
        bytes=len(hit.text.encode("utf-8", "surrogatepass")),
        tokens=tokens if isinstance(tokens, int) else None,
    )


def fitting(chunks: Sequence[VectorStoreFileChunk]) -> list[VectorStoreFileChunk]:
    """Return the first chunks that a response has room for."""
    size, kept = 0, list[VectorStoreFileChunk]()
    for chunk in chunks:
        size += carried_size(chunk.text)
        if kept and size > MAX_BYTES:
            break
        kept.append(chunk)
    return kept
