"""The provider that a vector store names: the index of this server."""

from stint.domain.errors import InvalidRequest

LLAMA_STACK_PROVIDERS = ("faiss", "sqlite-vec", "sqlite_vec", "chromadb", "pgvector", "milvus", "qdrant", "weaviate")
"""Names of Llama Stack's own providers. Its examples use them, and they stand for the index of this server."""


def check_index_provider(named: str | None, index: str) -> None:
    """Raise InvalidRequest for a provider that is not the index of this server. None stands for it."""
    if named not in (None, index, *LLAMA_STACK_PROVIDERS):
        raise InvalidRequest(
            f"Provider {named!r} not found. Use {index!r}, or leave it out. A store names the provider of "
            "its embedding model by the prefix of embedding_model: PROVIDER/ID.",
            code="provider_not_found",
            param="provider_id",
        )
