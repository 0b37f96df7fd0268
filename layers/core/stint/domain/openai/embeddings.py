"""Embeddings, as OpenAI's API has them."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from stint.domain.fields import invalid
from stint.domain.limits import EndUserId
from stint.domain.schema import Request, Schema

MOST_INPUTS = 2048
"""OpenAI's limit of one request."""


def read_input(value: Any) -> Any:
    """Return the texts of a request as a list. Lists of tokens are refused, because they belong to one tokenizer."""
    if isinstance(value, str):
        value = [value]
    if isinstance(value, list) and value and isinstance(value[0], int | list) and not isinstance(value[0], bool):
        raise invalid("Lists of tokens are not supported. Send texts.")
    if isinstance(value, list) and "" in value:
        raise invalid(f"Text {value.index('')} is empty. Omit it.")
    return value


class EmbeddingsRequest(Request):
    """Texts to embed. `user` has no effect."""

    model: str
    input: Annotated[list[str], BeforeValidator(read_input), Field(min_length=1, max_length=MOST_INPUTS)]
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: int | None = Field(default=None, ge=1, le=4096)
    user: EndUserId | None = None


class EmbeddingObject(Schema):
    """A vector: numbers, or little-endian float32 in base64."""

    object: Literal["embedding"] = "embedding"
    embedding: list[float] | str
    index: int


class EmbeddingsUsage(Schema):
    """The provider's count of tokens; -1 if it returned none."""

    prompt_tokens: int = -1
    total_tokens: int = -1


class EmbeddingsList(Schema):
    object: Literal["list"] = "list"
    data: list[EmbeddingObject]
    model: str
    usage: EmbeddingsUsage
