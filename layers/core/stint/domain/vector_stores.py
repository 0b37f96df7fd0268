"""Vector stores and their documents as they are stored, for both APIs.

A vector store of OpenAI's API and a vector db of Llama Stack's are the same record: the latter has an `identifier`. A
document is described by two objects because they have different writers: requests change its `DocumentSettings`, and
only an ingestion, under its lease, the `IngestionProgress`.
"""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints, model_validator

from stint.domain.errors import InvalidRequest
from stint.domain.fields import Omitted, invalid
from stint.domain.filters import Attributes
from stint.domain.schema import Request, Schema

DocumentStatus = Literal["in_progress", "completed", "failed", "cancelled"]
FailureCode = Literal["server_error", "unsupported_file", "invalid_file"]

MIN_CHUNK_TOKENS, MAX_CHUNK_TOKENS = 100, 4096


class StaticChunkSizes(Request):
    """Sizes of chunks, as OpenAI defines them."""

    max_chunk_size_tokens: int = Field(ge=MIN_CHUNK_TOKENS, le=MAX_CHUNK_TOKENS)
    chunk_overlap_tokens: int = Field(ge=0)

    @model_validator(mode="after")
    def check_overlap(self) -> "StaticChunkSizes":
        if self.chunk_overlap_tokens > self.max_chunk_size_tokens // 2:
            raise invalid("chunk_overlap_tokens must not exceed half of max_chunk_size_tokens.")
        return self


class StaticChunking(Request):
    """Chunks at the ends of sentences and lines, of sizes that the caller chose."""

    type: Literal["static"] = "static"
    static: StaticChunkSizes


class AutoChunking(Request):
    """Chunks of 800 tokens, which overlap by 400."""

    type: Literal["auto"] = "auto"


class WindowChunking(Request):
    """Windows of tokens, each of which overlaps the one before, as Llama Stack makes them. The default is a quarter."""

    type: Literal["windows"] = "windows"
    size: int = Field(gt=0)
    overlap: Omitted[int] = None


AUTO_SIZES = StaticChunkSizes(max_chunk_size_tokens=800, chunk_overlap_tokens=400)
ChunkingStrategy = Annotated[AutoChunking | StaticChunking, Field(discriminator="type")]
AnyChunking = Annotated[AutoChunking | StaticChunking | WindowChunking, Field(discriminator="type")]


class ExpiresAfter(Request):
    """A store expires some days after it was last used."""

    anchor: Literal["last_active_at"] = "last_active_at"
    days: Annotated[int, Field(ge=1, le=365)]


class EmbeddingChoice(Schema):
    """The embedding model of a store, by the `name` in its request and its full id. All vectors have its dimension."""

    name: str
    model: str
    dimension: int


class VectorStoreSettings(Schema):
    """The settings of a vector store."""

    name: str = ""
    description: Omitted[str] = None
    metadata: dict[str, str] = Field(default_factory=dict)
    expires_after: ExpiresAfter | None = None
    embedding: EmbeddingChoice
    chunking: AnyChunking = Field(default_factory=AutoChunking)
    owner: Omitted[str] = None
    """The session whose own store it is."""
    identifier: Omitted[str] = None
    """The name of a vector db."""
    provider_id: Omitted[str] = None
    """The provider of a vector db."""
    index: Omitted[str] = None
    """The index of its chunks, unless that is the default one."""


class FileCounts(Schema):
    """Numbers of documents by status."""

    in_progress: int = 0
    completed: int = 0
    failed: int = 0
    cancelled: int = 0
    total: int = 0


class StoreUsage(Schema):
    """The documents of a store: numbers, and bytes of all vectors and texts.

    `valid_until` is the time when the next of them expires.
    """

    file_counts: FileCounts = Field(default_factory=FileCounts)
    usage_bytes: int = 0
    valid_until: Omitted[int] = None


class LastError(Schema):
    """The reason why a document could not be ingested."""

    code: FailureCode
    message: str


class FileContent(Schema):
    """The content of a document is that of a file."""

    type: Literal["file"] = "file"
    file_id: str


class StoredContent(Schema):
    """The content of a document is an object of the bucket: an `InsertedText` or `InsertedChunks`."""

    type: Literal["text", "chunks"]
    blob: str
    length: int
    sha256: str


class ObjectContent(Schema):
    """The content of a document is a version of an object that was put into the inbox of the bucket."""

    type: Literal["object"] = "object"
    key: Annotated[str, StringConstraints(pattern=r"^inbox/")]
    etag: str
    size: int


Content = Annotated[FileContent | StoredContent | ObjectContent, Field(discriminator="type")]


class DocumentSettings(Schema):
    """The settings of a document, which change by requests only."""

    document_id: str
    """The id of its file, or the caller's id of a document that is no file."""
    filename: str = ""
    attributes: Attributes = Field(default_factory=dict)
    metadata: dict[str, Any] = Field(default_factory=dict)
    """What is returned with its chunks."""
    chunking: AnyChunking = Field(default_factory=AutoChunking)
    content: Content
    expires_at: Omitted[int] = None
    """The end of its file, in seconds since 1970."""
    entities: Omitted[list[str]] = None
    """Those that it names in a graph bank; None in other stores."""


class IngestionProgress(Schema):
    """The part of a document that was written: its text, and the chunks of a generation before `next_chunk`."""

    generation: str
    next_chunk: int = 0
    usage_bytes: int = 0
    text: Omitted[StoredContent] = None


class InsertedText(Schema):
    """A text to be split into chunks."""

    text: str


class InsertedChunk(Schema):
    """A chunk that a caller made, maybe with its vector."""

    text: str
    metadata: dict[str, Any] = Field(default_factory=dict)
    embedding: Omitted[list[float]] = None


class InsertedChunks(Schema):
    chunks: list[InsertedChunk]


class IngestionFailed(InvalidRequest):
    """A document cannot be ingested. The code is a FailureCode."""

    code = "invalid_file"


StoreName = Annotated[str, StringConstraints(max_length=256)]


def shared_metadata(chunks: Sequence[InsertedChunk]) -> dict[str, object]:
    """Return the metadata that is equal in all chunks of a document."""
    first, *others = (chunk.metadata for chunk in chunks)
    return {key: value for key, value in first.items() if all(key in one and one[key] == value for one in others)}


def is_same(found: DocumentSettings, new: DocumentSettings) -> bool:
    """Return whether the settings of a document are equal, wherever its content is stored."""
    old, content = found.content, new.content
    if isinstance(old, StoredContent) and isinstance(content, StoredContent):
        new = new.model_copy(update={"content": content.model_copy(update={"blob": old.blob})})
    return found == new
