"""Vector stores of OpenAI's API.

With the fields that Llama Stack adds to them. https://platform.openai.com/docs/api-reference/vector-stores
"""

from typing import Annotated, Literal

from pydantic import Field

from stint.domain.fields import Metadata, Omitted
from stint.domain.filters import Attributes, NewAttributes, NewFilter
from stint.domain.openai.lists import ListObject
from stint.domain.schema import Request, Schema
from stint.domain.vector_stores import (
    AUTO_SIZES,
    AutoChunking,
    ChunkingStrategy,
    DocumentStatus,
    ExpiresAfter,
    FileCounts,
    LastError,
    StaticChunking,
)

MAX_BATCH = 2_000
"""Maximum files of a batch, as at OpenAI."""

MAX_CREATED_WITH = 500
"""Maximum files that a store is created with. A batch takes more."""

MAX_QUERIES, MAX_QUERY_CHARACTERS = 10, 4_096

FileId = Annotated[str, Field(min_length=1, max_length=64)]
StoreStatus = Literal["expired", "in_progress", "completed"]


class CreateVectorStore(Request):
    """The request that creates a store. `embedding_model` and `provider_id` are extensions."""

    name: Annotated[str, Field(max_length=256)] | None = None
    description: Annotated[str, Field(max_length=512)] | None = None
    file_ids: Annotated[list[FileId], Field(max_length=MAX_CREATED_WITH)] = Field(default_factory=list)
    expires_after: ExpiresAfter | None = None
    chunking_strategy: ChunkingStrategy | None = None
    metadata: Metadata = Field(default_factory=dict)
    embedding_model: Annotated[str, Field(max_length=512)] | None = None
    embedding_dimension: int | None = None
    provider_id: Annotated[str, Field(max_length=128)] | None = None
    provider_vector_db_id: str | None = None


class UpdateVectorStore(Request):
    """The request that changes a store. Fields that are missing stay; null removes."""

    name: Annotated[str, Field(max_length=256)] | None = None
    expires_after: ExpiresAfter | None = None
    metadata: Metadata | None = None


class VectorStore(Schema):
    """A vector store as the API returns it."""

    id: str
    object: Literal["vector_store"] = "vector_store"
    created_at: int
    name: str
    description: str | None = None
    usage_bytes: int
    file_counts: FileCounts
    status: StoreStatus
    expires_after: ExpiresAfter | None
    expires_at: int | None
    last_active_at: int
    metadata: dict[str, str]


class VectorStoreList(ListObject[VectorStore]):
    """A page of vector stores."""


class DeletedVectorStore(Schema):
    id: str
    object: Literal["vector_store.deleted"] = "vector_store.deleted"
    deleted: Literal[True] = True


class CreateVectorStoreFile(Request):
    """The request that adds a file to a store."""

    file_id: FileId
    attributes: NewAttributes | None = None
    chunking_strategy: ChunkingStrategy | None = None


class UpdateVectorStoreFile(Request):
    """The request that replaces the attributes of a file in a store."""

    attributes: NewAttributes | None


class OtherChunking(Schema):
    """The chunks were made in another way."""

    type: Literal["other"] = "other"


class VectorStoreFile(Schema):
    """A file of a store. `id` is that of the file."""

    id: str
    object: Literal["vector_store.file"] = "vector_store.file"
    created_at: int
    vector_store_id: str
    status: DocumentStatus
    last_error: LastError | None
    usage_bytes: int
    attributes: Attributes
    chunking_strategy: AutoChunking | StaticChunking | OtherChunking
    filename: str
    """An extension of OpenAI's API."""

    def with_chunk_sizes(self) -> "VectorStoreFile":
        """Return the file in OpenAI's form, which has the sizes that `auto` stands for."""
        if not isinstance(self.chunking_strategy, AutoChunking):
            return self
        return self.model_copy(update={"chunking_strategy": StaticChunking(static=AUTO_SIZES)})


class VectorStoreFileList(ListObject[VectorStoreFile]):
    """A page of the files of a store, or of a batch."""


class DeletedVectorStoreFile(Schema):
    id: str
    object: Literal["vector_store.file.deleted"] = "vector_store.file.deleted"
    deleted: Literal[True] = True


class CreateFileBatch(Request):
    """The request that adds files to a store: either `file_ids`, or `files` with own settings."""

    file_ids: Annotated[list[FileId], Field(max_length=MAX_BATCH)] = Field(default_factory=list)
    files: Annotated[list[CreateVectorStoreFile], Field(max_length=MAX_BATCH)] = Field(default_factory=list)
    attributes: NewAttributes | None = None
    chunking_strategy: ChunkingStrategy | None = None


class FileBatch(Schema):
    """A batch of files that were added to a store at once."""

    id: str
    object: Literal["vector_store.files_batch"] = "vector_store.files_batch"
    created_at: int
    vector_store_id: str
    status: DocumentStatus
    file_counts: FileCounts


class TextContent(Schema):
    type: Literal["text"] = "text"
    text: str


class FileContentPage(Schema):
    """The text of a file of a store."""

    object: Literal["vector_store.file_content.page"] = "vector_store.file_content.page"
    file_id: str
    filename: str
    attributes: Attributes
    data: list[TextContent]
    content: list[TextContent]
    has_more: bool = False
    next_page: str | None = None


class VectorStoreFileChunk(Schema):
    """A chunk of a file, as searches find it. `tokens` is the approximate count by which the text was divided.

    It is left out of chunks that were inserted.
    """

    id: str
    object: Literal["vector_store.file.chunk"] = "vector_store.file.chunk"
    index: int
    text: str
    bytes: int
    tokens: Omitted[int] = None


class VectorStoreFileChunkList(ListObject[VectorStoreFileChunk]):
    """A page of the chunks of a file. `total` is the number of all its chunks."""

    total: int = 0


class RankingOptions(Request):
    """Options of the ranking. Each named ranker stands for reciprocal rank fusion."""

    ranker: Literal["none", "auto", "default-2024-11-15", "default-2024-08-21"] = "auto"
    score_threshold: float = Field(default=0.0, ge=0, le=1)


class SearchVectorStore(Request):
    """A search in one store. `rewrite_query` is accepted, and the query is searched as it is."""

    query: (
        Annotated[str, Field(min_length=1, max_length=MAX_QUERY_CHARACTERS)]
        | Annotated[
            list[Annotated[str, Field(min_length=1, max_length=MAX_QUERY_CHARACTERS)]],
            Field(min_length=1, max_length=MAX_QUERIES),
        ]
    )
    filters: NewFilter | None = None
    max_num_results: int = Field(default=10, ge=1, le=50)
    ranking_options: RankingOptions | None = None
    rewrite_query: bool = False
    search_mode: Literal["vector", "keyword", "hybrid"] = "hybrid"

    @property
    def queries(self) -> list[str]:
        return [self.query] if isinstance(self.query, str) else self.query


class SearchResult(Schema):
    """A chunk that was found, with its file."""

    file_id: str
    filename: str
    score: float
    attributes: Attributes
    content: list[TextContent]


class SearchResultsPage(Schema):
    """The chunks that were found, the best first. `search_query` has the queries, as a text in Llama Stack's form."""

    object: Literal["vector_store.search_results.page"] = "vector_store.search_results.page"
    search_query: list[str] | str
    data: list[SearchResult]
    has_more: bool = False
    next_page: str | None = None

    def with_text_query(self) -> "SearchResultsPage":
        """Return the page in Llama Stack's form, in which the queries are one text."""
        return self.model_copy(update={"search_query": " ".join(self.search_query)})
