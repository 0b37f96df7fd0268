"""The arguments of a retrieval from memory banks, which an agent's args have."""

from typing import Annotated, Any, Literal

from pydantic import Field

from stint.domain.content import Content
from stint.domain.entities import EntityNames
from stint.domain.llama_stack.rag import (
    MAX_CHUNKS,
    MAX_VECTOR_DBS,
    DefaultRAGQueryGeneratorConfig,
    LLMRAGQueryGeneratorConfig,
)
from stint.domain.schema import Request


class MemoryBankSelection(Request):
    """A bank to search: by meaning and words, by words only, or by the ids or the entities of documents."""

    type: Literal["vector", "keyword", "keyvalue", "graph"] = "vector"
    bank_id: str
    document_ids: Annotated[list[str], Field(max_length=MAX_CHUNKS)] = Field(default_factory=list)
    entities: EntityNames = Field(default_factory=list)


class CustomQueryGeneratorConfig(Request):
    """A tool writes the query: that of a registered `toolgroup`, or an endpoint in `args`.

    The name is `group` or `group/tool`. With the name `builtin::remote_execution`, `args` define the endpoint.
    """

    type: Literal["custom"]
    toolgroup: str = "query_generator"
    args: dict[str, Any] = Field(default_factory=dict)


class MemoryRetrievalArguments(Request):
    """The query, and the settings of the agent."""

    query: Content
    memory_banks: Annotated[list[MemoryBankSelection], Field(max_length=MAX_VECTOR_DBS)]
    query_generator_config: Annotated[
        DefaultRAGQueryGeneratorConfig | LLMRAGQueryGeneratorConfig | CustomQueryGeneratorConfig,
        Field(discriminator="type"),
    ] = Field(default_factory=DefaultRAGQueryGeneratorConfig)
    max_tokens_in_context: Annotated[int, Field(ge=0)] = 4096
    max_chunks: Annotated[int, Field(ge=1, le=MAX_CHUNKS)] = 10
