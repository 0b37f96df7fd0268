"""Retrieval of context from vector dbs (Llama Stack's rag-tool).

The objects of the requests /tool-runtime/rag-tool/..., and the arguments with which a model calls the same search as a
tool.
"""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from stint.domain.content import URL, Content, TextContentItem
from stint.domain.fields import invalid
from stint.domain.limits import PartLimit, check_metadata
from stint.domain.retrieval import Ranker, SearchMode
from stint.domain.schema import Request, Schema

MAX_CHUNKS = 100
"""Maximum chunks of a query."""

MAX_CHUNK_TOKENS = 4096
"""Maximum tokens of a chunk."""

MAX_VECTOR_DBS = 20
"""Maximum vector dbs of a query."""

MAX_TEMPLATE_LENGTH = 10_000

MAX_QUERY_LENGTH = 8_000
"""Maximum characters of a query. More would not fit into an embedding model."""

DEFAULT_CHUNK_TEMPLATE = "Result {index}\nContent: {chunk.content}\nMetadata: {metadata}\n"


def check_chunk_template(template: str) -> str:
    """Refuse a template without the index or the content of a chunk."""
    for placeholder in ("{chunk.content}", "{index}"):
        if placeholder not in template:
            raise invalid(f"chunk_template must contain {placeholder}")
    return template


class RAGDocument(Request):
    """A document to insert: a text, or the URL (http, https or data) of one."""

    document_id: Annotated[str, Field(min_length=1, max_length=1_000)]
    content: Content | URL
    mime_type: str | None = None
    metadata: Annotated[dict[str, Any], AfterValidator(check_metadata)] = Field(default_factory=dict)


class DefaultRAGQueryGeneratorConfig(Request):
    """The query is the content, joined by a separator."""

    type: Literal["default"] = "default"
    separator: Annotated[str, Field(max_length=100)] = " "


class LLMRAGQueryGeneratorConfig(Request):
    """A model writes the query. The template is its prompt, see `stint.jinja.template`."""

    type: Literal["llm"] = "llm"
    model: str
    template: Annotated[str, Field(max_length=MAX_TEMPLATE_LENGTH)]


class RAGQueryConfig(Request):
    """The settings of a query. `mode` is `vector` unless it is set, and `ranker` is for the mode `hybrid`."""

    query_generator_config: Annotated[
        DefaultRAGQueryGeneratorConfig | LLMRAGQueryGeneratorConfig, Field(discriminator="type")
    ] = Field(default_factory=DefaultRAGQueryGeneratorConfig)
    max_tokens_in_context: Annotated[int, Field(ge=0)] = 4096
    max_chunks: Annotated[int, Field(ge=1, le=MAX_CHUNKS)] = 5
    chunk_template: Annotated[str, Field(max_length=MAX_TEMPLATE_LENGTH), AfterValidator(check_chunk_template)] = (
        DEFAULT_CHUNK_TEMPLATE
    )
    mode: SearchMode | None = None
    ranker: Ranker | None = None


VectorDBIds = Annotated[list[str], Field(max_length=MAX_VECTOR_DBS)]


class RAGInsertRequest(Request):
    """Documents for a vector db."""

    documents: Annotated[list[RAGDocument], Field(max_length=1_000), PartLimit]
    vector_db_id: str
    chunk_size_in_tokens: Annotated[int, Field(ge=1, le=MAX_CHUNK_TOKENS)] = 512


class RAGQueryRequest(Request):
    content: Content
    vector_db_ids: VectorDBIds
    query_config: RAGQueryConfig = Field(default_factory=RAGQueryConfig)


class KnowledgeSearchArguments(Request):
    """The arguments of the tool knowledge_search: the model's query, and those of the toolgroup."""

    query: Content
    vector_db_ids: VectorDBIds = Field(default_factory=list)
    query_config: RAGQueryConfig = Field(default_factory=RAGQueryConfig)


class RAGQueryMetadata(Schema):
    """The chunks in the context, in its order."""

    document_ids: list[str] = Field(default_factory=list)
    chunks: list[str] = Field(default_factory=list)
    scores: list[float] = Field(default_factory=list)


class RAGQueryResult(Schema):
    """The context for the model; null if nothing was found."""

    content: list[TextContentItem] | None = None
    metadata: RAGQueryMetadata = Field(default_factory=RAGQueryMetadata)
