"""Vector stores: create, read, list, update, search, delete.

Numbers and status of a store are those of its documents (`usage.py`). A store of a session exists only for that
session, and with it: here it is not found. A deletion marks the store; the request, and after 20 s the worker, do the
rest (`removal.py`).

A creation with first files is two writes, the store and its files. A repetition with the same idempotency key finds the
store and adds the files again, so it completes what a process that died has left.
"""

from collections.abc import Sequence
from functools import partial

from stint.caller import create_once, end_users_of
from stint.dataclasses import dataclass
from stint.domain.errors import NotFound
from stint.domain.ids import name_of
from stint.domain.openai.vector_stores import (
    CreateVectorStore,
    DeletedVectorStore,
    SearchResult,
    SearchResultsPage,
    SearchVectorStore,
    TextContent,
    UpdateVectorStore,
    VectorStore,
    VectorStoreList,
)
from stint.domain.retrieval import FoundChunk, SearchRequest
from stint.domain.tasks import DeletionTask
from stint.domain.vector_stores import AutoChunking, StoreUsage, VectorStoreSettings
from stint.services.deletions import Deletions
from stint.services.knowledge.embedding_models import EmbeddingModels
from stint.services.knowledge.expired_stores import refuse_expired
from stint.services.knowledge.index_provider import choose_index
from stint.services.knowledge.search import Search
from stint.services.knowledge.store_documents import StoreDocuments
from stint.services.knowledge.usage import UsageCounter
from stint.store.parallel import map_concurrently
from stint.store.store import Store
from stint.store.vector_stores import Order, StoredVectorStore


@dataclass(frozen=True, slots=True)
class TenantVectorStores:
    """The vector stores of a tenant. Those of sessions do not exist here. Unknown ids raise NotFound.

    `indexes` are the providers that a new one can name, the default one first.
    """

    tenant: str
    """The tenant of the stores."""
    store: Store
    """The records."""
    models: EmbeddingModels
    """Chooses the model of a new store."""
    documents: StoreDocuments
    """Adds the first files."""
    usage: UsageCounter
    """Counts documents."""
    search_in: Search
    """Searches in stores."""
    deletions: Deletions
    """Starts deletions."""
    indexes: Sequence[str]
    """Providers that a new store can name, the default one first."""

    async def create(self, request: CreateVectorStore) -> VectorStore:
        """Create a store, with its first files. A repeated request with the same idempotency key creates it once.

        Raises:
            NotFound: one of the files does not exist. No store is created.
            InvalidRequest: the provider or the embedding model does not exist.
        """
        index = choose_index(request.provider_id, self.indexes)
        chunking = request.chunking_strategy or AutoChunking()
        settings = VectorStoreSettings(
            name=request.name or "",
            description=request.description,
            metadata=request.metadata,
            expires_after=request.expires_after,
            embedding=await self.models.choose_for_store(request.embedding_model),
            chunking=chunking,
            index=index,
        )
        files = await self.documents.prepare(request.file_ids, chunking)
        # The first files are added again, because an earlier request may have created the store without them.
        stored = await create_once(
            lambda object_id: self.store.vector_stores.get(self.tenant, name_of("vs", object_id)),
            lambda object_id: self.store.vector_stores.create(
                self.tenant, name_of("vs", object_id), settings, end_users_of()
            ),
        )
        if files:
            await self.documents.insertions.insert(stored.id, files)
            stored = await self.store.vector_stores.get(self.tenant, stored.id)
        return to_resource(stored, await self.usage.count_store(stored))

    async def get(self, store_id: str) -> VectorStore:
        stored = await self.documents.open(store_id)
        return to_resource(stored, await self.usage.count_store(stored))

    async def list(self, after: str | None, before: str | None, limit: int, order: Order) -> VectorStoreList:
        page = await self.store.vector_stores.list(self.tenant, after=after, before=before, limit=limit, order=order)
        await map_concurrently(self.documents.expired.delete_contents, page.data)
        usages = await map_concurrently(self.usage.count_store, page.data)
        resources = [to_resource(stored, usage) for stored, usage in zip(page.data, usages, strict=True)]
        return VectorStoreList.of(resources, page.has_more)

    async def update(self, store_id: str, request: UpdateVectorStore) -> VectorStore:
        """Change the fields of the request. Null removes one. Raises InvalidRequest for a store that has expired."""
        stored = await self.documents.open(store_id)
        refuse_expired(stored)
        changes = {name: getattr(request, name) for name in request.model_fields_set}
        named = changes | {"name": changes["name"] or ""} if "name" in changes else changes
        merged = named | {"metadata": named["metadata"] or {}} if "metadata" in named else named
        settings = stored.settings.model_copy(update=merged)
        stored = await self.store.vector_stores.update(self.tenant, store_id, settings)
        return to_resource(stored, await self.usage.count_store(stored))

    async def delete(self, store_id: str) -> DeletedVectorStore:
        """Delete a store with its documents. When this returns, no reader can find it. Its files stay.

        A repeated request finishes the deletion of one that failed.
        """
        # Also of a marked store, so that a repetition can finish its deletion.
        settings = await self.store.vector_stores.find_settings(self.tenant, store_id)
        if settings is None or settings.owner is not None:
            raise NotFound("Vector store", store_id)
        await self.delete_store(store_id)
        return DeletedVectorStore(id=store_id)

    async def delete_store(self, store_id: str) -> None:
        """Delete a store, also that of a session. It may be repeated. Raises NotFound if it does not exist."""
        task = DeletionTask(kind="delete_vector_store", tenant=self.tenant, vector_store_id=store_id)
        mark = partial(self.store.vector_stores.mark_deleted, self.tenant, store_id)
        await self.deletions.start_deletion(task, mark)

    async def search(self, store_id: str, request: SearchVectorStore) -> SearchResultsPage:
        """Return the chunks of a store that fit the queries best."""
        threshold = request.ranking_options.score_threshold if request.ranking_options else 0.0
        found = await self.search_in.search(
            SearchRequest(
                store_ids=[store_id],
                queries=request.queries,
                max_results=request.max_num_results,
                mode=request.search_mode,
                filter=request.filters,
                score_threshold=threshold,
            )
        )
        return SearchResultsPage(search_query=request.queries, data=[to_result(chunk) for chunk in found])


def to_resource(stored: StoredVectorStore, usage: StoreUsage) -> VectorStore:
    settings, running = stored.settings, usage.file_counts.in_progress > 0
    return VectorStore(
        id=stored.id,
        created_at=stored.created_at,
        name=settings.name,
        description=settings.description,
        usage_bytes=0 if stored.emptied else usage.usage_bytes,
        file_counts=usage.file_counts,
        status="expired" if stored.expired else "in_progress" if running else "completed",
        expires_after=settings.expires_after,
        expires_at=stored.expires_at,
        last_active_at=stored.last_active_at,
        metadata=settings.metadata,
    )


def to_result(chunk: FoundChunk) -> SearchResult:
    return SearchResult(
        file_id=chunk.document_id,
        filename=chunk.filename,
        score=chunk.score,
        attributes=chunk.attributes,
        content=[TextContent(text=chunk.text)],
    )
