"""Chunks in vector dbs: inserted as they are, and found."""

from typing import Annotated, Any

from pydantic import AfterValidator, Field

from stint.domain.content import Content
from stint.domain.limits import PartLimit, check_metadata
from stint.domain.llama_stack.rag import MAX_CHUNKS
from stint.domain.retrieval import Ranker, SearchMode
from stint.domain.schema import Request, Schema

MAX_INSERTED_CHUNKS = 1_000
"""Maximum chunks of a request."""


class NewChunk(Request):
    """A chunk to insert. Its metadata has the `document_id`; without an embedding, the text is embedded."""

    content: Content
    metadata: Annotated[dict[str, Any], AfterValidator(check_metadata)] = Field(default_factory=dict)
    embedding: Annotated[list[float], Field(max_length=4_096)] | None = None


class ChunkInsertRequest(Request):
    """Chunks for a vector db. `ttl_seconds` has no effect, as in Llama Stack."""

    vector_db_id: str
    chunks: Annotated[list[NewChunk], Field(min_length=1, max_length=MAX_INSERTED_CHUNKS), PartLimit]
    ttl_seconds: int | None = None


class ChunkQueryParams(Request):
    """The settings of a query. `mode` is `vector` unless it is set, and `ranker` is for the mode `hybrid`."""

    max_chunks: Annotated[int, Field(ge=1, le=MAX_CHUNKS)] = 3
    score_threshold: float = 0.0
    mode: SearchMode | None = None
    ranker: Ranker | None = None


class ChunkQueryRequest(Request):
    vector_db_id: str
    query: Content
    params: ChunkQueryParams = Field(default_factory=ChunkQueryParams)


class FoundVectorChunk(Schema):
    """A chunk that was found. Embeddings are not returned."""

    content: str
    metadata: dict[str, Any]
    embedding: list[float] | None = None


class ChunkQueryResponse(Schema):
    """The chunks that were found, the best first."""

    chunks: list[FoundVectorChunk]
    scores: list[float]
