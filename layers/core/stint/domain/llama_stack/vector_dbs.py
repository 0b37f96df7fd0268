"""Vector dbs: named vector stores of Llama Stack's API."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from stint.domain.llama_stack.registrations import Owner, check_identifier, check_segments
from stint.domain.schema import Request, Schema

MAX_IDENTIFIER_BYTES = 1_000


VectorDBName = Annotated[str, Field(min_length=1), AfterValidator(check_identifier), AfterValidator(check_segments)]


class VectorDBEntry(Schema):
    """A vector db in a list. `embedding_dimension` is that of its vectors."""

    identifier: str
    provider_resource_id: str
    provider_id: str
    type: Literal["vector_db"] = "vector_db"
    embedding_model: str
    embedding_dimension: int


class VectorDB(Schema):
    """A vector db. `embedding_dimension` is that of its vectors."""

    identifier: str
    provider_resource_id: str
    provider_id: str
    type: Literal["vector_db"] = "vector_db"
    owner: Owner | None = None
    embedding_model: str
    embedding_dimension: int


class VectorDBList(Schema):
    data: list[VectorDBEntry]


class VectorDBRegisterRequest(Request):
    """A vector db to register. The embedding model decides on the dimension, whatever is requested."""

    vector_db_id: VectorDBName
    embedding_model: str
    embedding_dimension: int | None = 384
    provider_id: str | None = None
    provider_vector_db_id: Annotated[str, Field(max_length=MAX_IDENTIFIER_BYTES)] | None = None
