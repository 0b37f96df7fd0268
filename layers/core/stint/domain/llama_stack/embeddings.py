"""Embeddings, as Llama Stack's inference has them."""

from typing import Annotated, Literal

from pydantic import Field

from stint.domain.content import ContentItem
from stint.domain.schema import Request, Schema

MOST_CONTENTS = 2048


class InferenceEmbeddingsRequest(Request):
    """Contents to embed: texts, or text items. Images are refused."""

    model_id: str
    contents: Annotated[list[str | ContentItem], Field(max_length=MOST_CONTENTS)]
    text_truncation: Literal["none", "start", "end"] = "none"
    output_dimension: int | None = Field(default=None, ge=1, le=4096)
    task_type: Literal["query", "document"] = "document"


class InferenceEmbeddings(Schema):
    embeddings: list[list[float]]
