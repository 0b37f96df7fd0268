"""Memory banks of the API of October 2024.

Each bank is a vector store with the name of the bank. Its type decides how documents are found: by meaning, by words,
by ids, or by shared entities.
"""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from stint.domain.content import URL
from stint.domain.fields import Omitted, invalid
from stint.domain.limits import PartLimit, check_metadata
from stint.domain.llama_stack.rag import MAX_CHUNK_TOKENS
from stint.domain.llama_stack.registrations import Identifier, check_segments
from stint.domain.schema import Request, Schema
from stint.october_2024.schemas.messages import OctoberContent


def refuse_comma(bank_id: str) -> str:
    """Refuse a comma, because a stored retrieval has the ids of its banks in a text, with commas between them."""
    if "," in bank_id:
        raise invalid("The id of a bank cannot have a comma. Choose another one.")
    return bank_id


BankIdentifier = Annotated[Identifier, AfterValidator(check_segments), AfterValidator(refuse_comma)]

MOST_DOCUMENTS = 1_000
"""Maximum documents of a request."""


class VectorBank(Request):
    """A bank whose chunks are found by their meaning. `overlap_size_in_tokens` is a quarter of the chunk by default."""

    type: Literal["vector"] = "vector"
    identifier: BankIdentifier
    provider_id: str = ""
    embedding_model: str = ""
    chunk_size_in_tokens: Annotated[int, Field(ge=1, le=MAX_CHUNK_TOKENS)] = 512
    overlap_size_in_tokens: Annotated[int, Field(ge=0)] | None = None


class KeywordBank(Request):
    """A bank whose chunks are found by their words."""

    type: Literal["keyword"]
    identifier: BankIdentifier
    provider_id: str = ""


class KeyValueBank(Request):
    """A bank whose documents are found by their ids."""

    type: Literal["keyvalue"]
    identifier: BankIdentifier
    provider_id: str = ""


class GraphBank(Request):
    """A bank whose documents are found by the entities that they name. `model` finds those of documents."""

    type: Literal["graph"]
    identifier: BankIdentifier
    provider_id: str = ""
    model: Omitted[str] = None


def default_type(bank: Any) -> Any:
    """Return the definition of a bank, which is a vector bank unless it says otherwise."""
    return {"type": "vector", **bank} if isinstance(bank, dict) else bank


BankDefinition = Annotated[VectorBank | KeywordBank | KeyValueBank | GraphBank, Field(discriminator="type")]
NewBank = Annotated[BankDefinition, BeforeValidator(default_type)]


class BankRegisterRequest(Request):
    memory_bank: NewBank


class BankName(Request):
    identifier: str


class BankSettings(Schema):
    """The settings of a bank, without its name."""

    type: Literal["vector", "keyword", "keyvalue", "graph"] = "vector"
    embedding_model: str = ""
    chunk_size_in_tokens: Annotated[int, Field(ge=1, le=MAX_CHUNK_TOKENS)] = 512
    overlap_size_in_tokens: Annotated[int, Field(ge=0)] | None = None
    model: Omitted[str] = None


class BankCreateRequest(Request):
    """A bank as client 0.0.40 creates it. The server chooses its id."""

    name: str
    config: BankSettings
    url: URL | str | None = None


class CreatedBank(Schema):
    bank_id: str
    name: str
    config: BankSettings
    url: str | None = None


class BankId(Request):
    bank_id: str


class BankDocument(Request):
    """A document: its content, or the URL of it."""

    document_id: Annotated[str, Field(min_length=1, max_length=1_000)]
    content: OctoberContent | URL
    mime_type: str | None = None
    metadata: Annotated[dict[str, Any], AfterValidator(check_metadata)] = Field(default_factory=dict)


LONGEST_LIFE = 100 * 366 * 24 * 3_600
"""Seconds of a hundred years."""

BankDocuments = Annotated[list[BankDocument], Field(max_length=MOST_DOCUMENTS), PartLimit]


class MemoryInsertRequest(Request):
    """Documents to insert. After `ttl_seconds` they are deleted."""

    bank_id: str
    documents: BankDocuments
    ttl_seconds: Annotated[int, Field(ge=1, le=LONGEST_LIFE)] | None = None


class MemoryUpdateRequest(Request):
    """Documents that replace those with the same ids."""

    bank_id: str
    documents: BankDocuments


class MemoryQueryRequest(Request):
    bank_id: str
    query: OctoberContent
    params: dict[str, Any] = Field(default_factory=dict)


class BankChunk(Schema):
    content: OctoberContent
    token_count: int
    document_id: str


class MemoryQueryResponse(Schema):
    """Chunks, the best first, and their scores."""

    chunks: list[BankChunk]
    scores: list[float]


class BankDocumentNames(Request):
    bank_id: str
    document_ids: Annotated[list[str], Field(max_length=MOST_DOCUMENTS)]
