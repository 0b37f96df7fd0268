"""Queries for chunks of vector dbs."""

from hashlib import sha256
from typing import Any
from uuid import UUID

from stint.dataclasses import dataclass
from stint.domain.content import text_of
from stint.domain.errors import InvalidRequest
from stint.domain.llama_stack.rag import MAX_QUERY_LENGTH
from stint.domain.llama_stack.vector_io import (
    ChunkNames,
    ChunkQueryRequest,
    ChunkQueryResponse,
    FoundEmbeddedChunk,
    FoundVectorChunk,
)
from stint.domain.retrieval import FoundChunk, RRFRanker, SearchRequest
from stint.domain.vector_stores import EmbeddingChoice
from stint.services.knowledge.rag import ChunkSearch
from stint.services.knowledge.rag_context import metadata_of, token_counts
from stint.services.knowledge.vector_dbs import VectorDBs, named_vector_db


@dataclass(frozen=True, slots=True)
class VectorIO:
    """The chunks of a tenant's vector dbs."""

    vector_dbs: VectorDBs
    search: ChunkSearch

    async def query(self, request: ChunkQueryRequest) -> ChunkQueryResponse:
        """Return the chunks that fit a query best.

        Raises:
            NotFound: the vector db does not exist.
            InvalidRequest: the query has no text.
        """
        query, params = text_of(request.query), request.params
        if not query.strip():
            raise InvalidRequest("The query has no text.", param="query")
        search = SearchRequest(
            store_ids=await self.vector_dbs.resolve([request.vector_db_id]),
            queries=[query[:MAX_QUERY_LENGTH]],
            max_results=params.max_chunks,
            mode=params.mode or "vector",
            ranker=params.ranker or RRFRanker(),
            score_threshold=params.score_threshold,
        )
        with named_vector_db(request.vector_db_id):
            found = await self.search.search(search)
        chunks = [FoundVectorChunk(content=one.text, metadata=shown_metadata(one)) for one in found]
        if request.vector_store_id is not None:
            embedding = (await self.vector_dbs.open(request.vector_db_id)).settings.embedding
            chunks = [to_embedded_chunk(shown, embedding) for shown in chunks]
        return ChunkQueryResponse(chunks=chunks, scores=[one.score for one in found])


def to_embedded_chunk(chunk: FoundVectorChunk, embedding: EmbeddingChoice) -> FoundVectorChunk:
    """Return a chunk in the form of newer clients. Its id is made of its document and its text, as in Llama Stack."""
    document_id = str(chunk.metadata["document_id"])
    chunk_id = str(UUID(bytes=sha256(f"{document_id}:{chunk.content}".encode()).digest()[:16]))
    return FoundEmbeddedChunk(
        content=chunk.content,
        metadata=chunk.metadata,
        chunk_id=chunk_id,
        chunk_metadata=ChunkNames(chunk_id=chunk_id, document_id=document_id),
        embedding_model=embedding.name,
        embedding_dimension=embedding.dimension,
    )


def shown_metadata(chunk: FoundChunk) -> dict[str, Any]:
    """Return the metadata of a chunk, with its tokens unless it was inserted as a chunk, whose metadata has its id."""
    counts = {} if "document_id" in chunk.metadata else token_counts(chunk)
    return metadata_of(chunk) | counts
