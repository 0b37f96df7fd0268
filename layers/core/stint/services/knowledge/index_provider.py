"""The provider that a vector store names: an index of this server."""

from collections.abc import Sequence

from stint.domain.errors import InvalidRequest
from stint.store.keys import vector_index
from stint.store.vector_stores import StoredVectorStore

LLAMA_STACK_PROVIDERS = ("faiss", "sqlite-vec", "sqlite_vec", "chromadb", "pgvector", "milvus", "qdrant", "weaviate")
"""Names of Llama Stack's own providers. Its examples use them, and they stand for the index of this server."""


def choose_index(named: str | None, indexes: Sequence[str]) -> str | None:
    """Return the index that a new store names; None for the first of `indexes`, which is the default.

    Raises:
        InvalidRequest: the provider is not an index of this server.
    """
    if named in indexes[1:]:
        return named
    if named not in (None, indexes[0], *LLAMA_STACK_PROVIDERS):
        raise InvalidRequest(
            f"Provider {named!r} not found. Use {' or '.join(map(repr, indexes))}, or leave it out. A store names the "
            "provider of its embedding model by the prefix of embedding_model: PROVIDER/ID.",
            code="provider_not_found",
            param="provider_id",
        )
    return None


def index_of(tenant: str, store: StoredVectorStore) -> str:
    """Return the name of the index of a vector store, after that of its provider if it is not the default one."""
    name = vector_index(tenant, store.id)
    return f"{store.settings.index}/{name}" if store.settings.index else name
