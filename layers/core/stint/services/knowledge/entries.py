"""The entries of a document in the index of its store."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from stint.retrieval.port import Entry
from stint.store.stored_documents import StoredDocument

if TYPE_CHECKING:
    from stint.services.knowledge.contents import Chunk


def make_entries(
    found: StoredDocument, generation: str, first: int, chunks: "Sequence[Chunk]", vectors: Sequence[Sequence[float]]
) -> Iterator[Entry]:
    for ordinal, (chunk, vector) in enumerate(zip(chunks, vectors, strict=True), first):
        yield Entry(
            key=chunk_key(found.key, generation, ordinal),
            vector=vector,
            text=chunk.text,
            document=found.key,
            generation=generation,
            attributes=found.settings.attributes,
            metadata=chunk.metadata,
        )


def chunk_key(document: str, generation: str, ordinal: int) -> str:
    return f"{document}:{generation}:{ordinal:06d}"


def chunk_keys(document: str, generation: str, count: int) -> list[str]:
    return [chunk_key(document, generation, ordinal) for ordinal in range(count)]
