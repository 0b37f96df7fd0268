"""Chunks in vector dbs: inserted as they are, and found.

The objects of Llama Stack's /vector-io. Its newer clients call the id of a vector db `vector_store_id`, and expect
found chunks in another form, which they get if they send that name.
"""

from typing import Annotated, Any

from pydantic import AfterValidator, ConfigDict, Field, model_validator

from stint.domain.content import Content
from stint.domain.fields import invalid
from stint.domain.limits import PartLimit, check_metadata
from stint.domain.llama_stack.rag import MAX_CHUNKS
from stint.domain.retrieval import Ranker, SearchMode
from stint.domain.schema import Request, Schema

MAX_INSERTED_CHUNKS = 1_000
"""Maximum chunks of a request."""


class ChunkOrigin(Request):
    """The part of a chunk's `chunk_metadata` that is read: its document, if the metadata does not name one."""

    document_id: str | None = None


class NewChunk(Request):
    """A chunk to insert. Its metadata has the `document_id`; without an embedding, the text is embedded."""

    content: Content
    metadata: Annotated[dict[str, Any], AfterValidator(check_metadata)] = Field(default_factory=dict)
    chunk_metadata: ChunkOrigin | None = None
    embedding: Annotated[list[float], Field(max_length=4_096)] | None = None


def require_either_id(schema: dict[str, Any]) -> None:
    """Mark either name of the id as enough in the JSON schema of a request."""
    schema["required"].remove("vector_db_id")
    schema["anyOf"] = [{"required": ["vector_db_id"]}, {"required": ["vector_store_id"]}]


class VectorDBRequest(Request):
    """A request for one vector db. Newer clients of Llama Stack call its id `vector_store_id`."""

    model_config = ConfigDict(json_schema_extra=require_either_id)

    vector_db_id: str
    vector_store_id: str | None = None

    @model_validator(mode="before")
    @classmethod
    def read_either_id(cls, data: Any) -> Any:
        store_id = data.get("vector_store_id") if isinstance(data, dict) else None
        if not isinstance(store_id, str):
            return data
        if data.get("vector_db_id") not in (None, store_id):
            raise invalid("vector_db_id and vector_store_id are different. Send one of them")
        return data | {"vector_db_id": store_id}


class ChunkInsertRequest(VectorDBRequest):
    """Chunks for a vector db. `ttl_seconds` has no effect, as in Llama Stack."""

    chunks: Annotated[list[NewChunk], Field(min_length=1, max_length=MAX_INSERTED_CHUNKS), PartLimit]
    ttl_seconds: int | None = None


class ChunkQueryParams(Request):
    """The settings of a query. `mode` is `vector` unless it is set, and `ranker` is for the mode `hybrid`."""

    max_chunks: Annotated[int, Field(ge=1, le=MAX_CHUNKS)] = 3
    score_threshold: float = 0.0
    mode: SearchMode | None = None
    ranker: Ranker | None = None


class ChunkQueryRequest(VectorDBRequest):
    query: Content
    params: ChunkQueryParams = Field(default_factory=ChunkQueryParams)


class FoundVectorChunk(Schema):
    """A chunk that was found. Embeddings are not returned."""

    content: str
    metadata: dict[str, Any]
    embedding: list[float] | None = None


class ChunkNames(Schema):
    """The ids of a chunk that was found, and of its document."""

    chunk_id: str
    document_id: str


class FoundEmbeddedChunk(FoundVectorChunk):
    """A chunk in the form of newer clients, which want an embedding: it is empty."""

    chunk_id: str
    chunk_metadata: ChunkNames
    embedding: list[float] = Field(default_factory=list)
    embedding_model: str
    embedding_dimension: int


class ChunkQueryResponse(Schema):
    """The chunks that were found, the best first. Those of a `vector_store_id` have the form of newer clients."""

    chunks: list[FoundEmbeddedChunk | FoundVectorChunk]
    scores: list[float]
