"""Insertion of documents and chunks into vector dbs. Callers find them at once."""

from collections import defaultdict
from collections.abc import Sequence

from stint.dataclasses import dataclass
from stint.documents.document_reader import DocumentReader
from stint.domain.content import Document, text_of
from stint.domain.errors import InvalidRequest
from stint.domain.llama_stack.rag import RAGDocument, RAGInsertRequest
from stint.domain.llama_stack.vector_io import ChunkInsertRequest, NewChunk
from stint.domain.vector_stores import InsertedChunk, WindowChunking
from stint.services.knowledge.insertions import Insertions, NewText
from stint.services.knowledge.rag_context import METADATA_TOKEN_COUNT, TOKEN_COUNT
from stint.services.knowledge.vector_dbs import VectorDBs

URL_SCHEMES = ("http://", "https://", "data:")


@dataclass(frozen=True, slots=True)
class RAGInsertion:
    """Inserts into the vector dbs of a tenant."""

    vector_dbs: VectorDBs
    insertions: Insertions
    reader: DocumentReader

    async def insert_documents(self, request: RAGInsertRequest, deadline: float) -> None:
        """Insert documents, and wait until they can be found. One with the id of another replaces it.

        Raises:
            NotFound: the vector db does not exist.
            InvalidRequest: a document cannot be read. The message names it, and nothing was inserted.
            DeadlineExceeded: the worker is still ingesting documents, and continues.
        """
        stored = await self.vector_dbs.open(request.vector_db_id)
        # All documents are read before the first is inserted, so that an unreadable one leaves nothing behind.
        texts = await self.read(request.documents)
        if texts:
            chunking = WindowChunking(size=request.chunk_size_in_tokens)
            documents = await self.insertions.insert_texts(stored.id, texts, chunking)
            await self.insertions.wait(stored.id, documents, deadline)

    async def read(self, documents: Sequence[RAGDocument]) -> list[NewText]:
        """Return the texts of documents. Empty ones are omitted."""
        found = await self.reader.read([to_document(each) for each in documents])
        return [
            NewText(each.document_id, read.text, each.metadata)
            for each, read in zip(documents, found, strict=True)
            if read.text.strip()
        ]

    async def insert_chunks(self, request: ChunkInsertRequest, deadline: float) -> None:
        """Insert chunks as they are, and wait until they can be found.

        Raises:
            NotFound: the vector db does not exist.
            InvalidRequest: a chunk has no document_id or text, or a vector has the wrong dimension.
            DeadlineExceeded: the worker is still ingesting chunks, and continues.
        """
        stored = await self.vector_dbs.open(request.vector_db_id)
        chunks: dict[str, list[InsertedChunk]] = defaultdict(list)
        for place, chunk in enumerate(request.chunks):
            document_id = document_of(place, chunk)
            chunks[document_id].append(to_inserted(place, chunk, document_id))
        documents = await self.insertions.insert_chunks(stored.id, chunks)
        await self.insertions.wait(stored.id, documents, deadline)


def to_document(document: RAGDocument) -> Document:
    """Return a document for the reader. A text that is a URL stands for what is there, as in Llama Stack."""
    content, mime_type = document.content, document.mime_type or "application/octet-stream"
    if isinstance(content, list):
        content = " ".join(text_of(item) for item in content)
    if isinstance(content, str) and content.startswith(URL_SCHEMES) and " " not in content:
        return Document.model_validate({"content": {"uri": content}, "mime_type": mime_type})
    return Document(content=content, mime_type=mime_type)


def document_of(place: int, chunk: NewChunk) -> str:
    """Return the id of a chunk's document. Raises InvalidRequest if it has none."""
    document_id = chunk.metadata.get("document_id") or (chunk.chunk_metadata and chunk.chunk_metadata.document_id)
    if not isinstance(document_id, str) or not document_id:
        where = f"chunks[{place}].metadata.document_id"
        raise InvalidRequest(f"{where} is missing. Set it to the id of the chunk's document.", param=where)
    return document_id


def to_inserted(place: int, chunk: NewChunk, document_id: str) -> InsertedChunk:
    """Return a chunk with its text. Raises InvalidRequest if it has none."""
    text = text_of(chunk.content)
    if not text.strip():
        where = f"chunks[{place}].content"
        raise InvalidRequest(f"{where} has no text. Images cannot be inserted.", param=where)
    metadata = {
        name: value for name, value in chunk.metadata.items() if name not in (TOKEN_COUNT, METADATA_TOKEN_COUNT)
    }
    return InsertedChunk(text=text, metadata=metadata | {"document_id": document_id}, embedding=chunk.embedding)
