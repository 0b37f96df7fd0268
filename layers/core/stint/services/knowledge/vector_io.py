"""Queries for chunks of vector dbs."""

from typing import Any

from stint.dataclasses import dataclass
from stint.domain.content import text_of
from stint.domain.errors import InvalidRequest
from stint.domain.llama_stack.rag import MAX_QUERY_LENGTH
from stint.domain.llama_stack.vector_io import ChunkQueryRequest, ChunkQueryResponse, FoundVectorChunk
from stint.domain.retrieval import FoundChunk, RRFRanker, SearchRequest
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
        return ChunkQueryResponse(chunks=chunks, scores=[one.score for one in found])


def shown_metadata(chunk: FoundChunk) -> dict[str, Any]:
    """Return the metadata of a chunk, with its tokens unless it was inserted as a chunk, whose metadata has its id."""
    counts = {} if "document_id" in chunk.metadata else token_counts(chunk)
    return metadata_of(chunk) | counts
