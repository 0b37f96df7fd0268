"""Searches in vector stores.

The index finds chunks, and the records of their documents decide which of them count. A search is therefore: the stores
in one read, the embeddings of the queries, one query of each index, and the records of all documents that were hit in
one read. A hit counts if its document is live, its generation is the record's, and the record's attributes match the
filter. So what was deleted, replaced or changed is right at once, whatever the index still has.

Hits that do not count leave too few results. The query is then repeated with four times as many hits, up to MAX_HITS.

The stores of a run are read once for all its searches (`OpenStores`). A later search checks with its read of the
records that they still exist.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from stint.dataclasses import dataclass, replace
from stint.domain.errors import NotFound
from stint.domain.retrieval import FoundChunk, RRFRanker, SearchRequest
from stint.domain.vector_stores import EmbeddingChoice
from stint.retrieval.port import Hit, IndexQuery, Vector, VectorIndex
from stint.services.knowledge.embedding_models import EmbeddingModels
from stint.services.knowledge.expired_stores import ExpiredStores, refuse_expired
from stint.services.knowledge.index_provider import index_of
from stint.store.parallel import map_concurrently
from stint.store.store import Store
from stint.store.stored_documents import StoredDocument
from stint.store.vector_stores import StoredVectorStore

logger = logging.getLogger(__name__)

MAX_HITS = 1_000
"""Maximum hits that are read of one index for one query."""

EXTRA_HITS = 4
"""Hits that are requested beyond the number of results, in case some are outdated."""

QUIET_SECONDS = 60
"""Seconds after which a search is noted again as activity of a store that expires."""

Documents = Mapping[tuple[str, str], StoredDocument]


@dataclass(frozen=True, slots=True)
class Query:
    """One query in one store."""

    store: StoredVectorStore
    text: str
    vector: Vector | None


@dataclass(frozen=True, slots=True)
class QueryHits:
    """The hits of a query. `more`: the index may have others."""

    query: Query
    hits: Sequence[Hit]
    more: bool


@dataclass(frozen=True, slots=True)
class Search:
    """Searches the vector stores of a tenant."""

    tenant: str
    store: Store
    make_index: Callable[[], VectorIndex]
    models: EmbeddingModels
    expired: ExpiredStores

    async def search(self, request: SearchRequest) -> list[FoundChunk]:
        """Return the best chunks of all stores, sorted by score, store, document and key.

        Scores are from 0 to 1; see `to_score`. A chunk that is equal to another of its document is omitted.

        Raises:
            NotFound: a store does not exist, or belongs to another session.
            InvalidRequest: a store has expired.
        """
        return await self.search_in(await self.open_stores(request), request)

    async def open(self, request: SearchRequest) -> "OpenStores":
        """Read the stores of a search, to search in them later and more than once. Raises as `search`."""
        return OpenStores(self, await self.open_stores(request), request)

    async def search_in(
        self, stores: Sequence[StoredVectorStore], request: SearchRequest, *, again: bool = False
    ) -> list[FoundChunk]:
        """Return the best chunks of stores that were read. `again`: that was earlier, so that they may be deleted."""
        queries = await self.make_queries(stores, request)
        chunks = await self.query(queries, request, [store.id for store in stores] if again else ())
        # At most once a minute, so that few searches have a write.
        await self.note_activity(stores)
        kept = [chunk for chunk in chunks if chunk.score >= request.score_threshold]
        return kept[: request.max_results]

    async def open_stores(self, request: SearchRequest) -> list[StoredVectorStore]:
        """Read all stores in one call, and refuse those that cannot be searched."""
        found = await self.store.vector_stores.get_many(self.tenant, list(dict.fromkeys(request.store_ids)))
        for store in found.values():
            # Not found rather than forbidden: other sessions need not know that it exists.
            if store.settings.owner not in (None, request.session):
                raise NotFound("Vector store", store.id)
            await self.expired.delete_contents(store)
            refuse_expired(store)
        return list(found.values())

    async def make_queries(self, stores: Sequence[StoredVectorStore], request: SearchRequest) -> list[Query]:
        """Embed the queries once for each embedding model."""
        texts = list(dict.fromkeys(text for text in request.queries if text.strip()))
        if request.mode == "keyword" or not texts:
            return [Query(store, text, None) for store in stores for text in texts]
        choices = {(one.model, one.dimension): one for one in (store.settings.embedding for store in stores)}

        async def embed(choice: EmbeddingChoice) -> list[Vector]:
            return await self.models.embed(choice, texts, "query")

        vectors = dict(zip(choices, await map_concurrently(embed, list(choices.values())), strict=True))
        return [
            Query(store, text, vector)
            for store in stores
            for text, vector in zip(
                texts, vectors[store.settings.embedding.model, store.settings.embedding.dimension], strict=True
            )
        ]

    async def query(self, queries: Sequence[Query], request: SearchRequest, checked: Sequence[str]) -> list[FoundChunk]:
        """Query the indexes, with more results if too many hits are outdated. See `read_documents`."""
        k = request.max_results + EXTRA_HITS
        while True:
            found = await map_concurrently(partial(self.query_index, request, k), queries)
            documents = await self.read_documents(found, checked)
            chunks = merge(found, documents, request)
            # `more` is false for an index that has returned all it has.
            if k >= MAX_HITS or len(chunks) >= request.max_results or not any(one.more for one in found):
                return chunks
            k = min(MAX_HITS, 4 * k)

    async def query_index(self, request: SearchRequest, k: int, query: Query) -> QueryHits:
        """Query one index. A store without documents has none."""
        asked = IndexQuery(
            k=k,
            mode=request.mode,
            vector=query.vector,
            text=None if request.mode == "vector" else query.text,
            filter=request.filter,
            ranker=request.ranker,
        )
        try:
            hits = await self.make_index().query(index_of(self.tenant, query.store), asked)
        except NotFound:
            hits = []
        return QueryHits(query, hits, len(hits) >= k)

    async def read_documents(self, found: Sequence[QueryHits], checked: Sequence[str]) -> Documents:
        """Read the records of all documents that were hit in one call.

        Raises NotFound if one of the stores `checked` was deleted or emptied since it was read.
        """
        wanted = [(one.query.store.id, hit.document) for one in found for hit in one.hits]
        return await self.store.vector_store_documents.find_all(self.tenant, wanted, checked) if wanted else {}

    async def note_activity(self, stores: Sequence[StoredVectorStore]) -> None:
        """Note the search in stores that expire, once a minute at most."""
        for store in stores:
            if store.settings.expires_after is not None and store.idle_seconds >= QUIET_SECONDS:
                await self.store.vector_stores.touch(self.tenant, store.id)


@dataclass(frozen=True, slots=True)
class OpenStores:
    """A search in stores that were read once. Its request has no queries."""

    knowledge: Search
    stores: Sequence[StoredVectorStore]
    request: SearchRequest

    async def search(self, queries: Sequence[str]) -> list[FoundChunk]:
        """Return the best chunks for queries. Raises NotFound if a store was deleted since it was read."""
        return await self.knowledge.search_in(self.stores, replace(self.request, queries=queries), again=True)


def merge(found: Sequence[QueryHits], documents: Documents, request: SearchRequest) -> list[FoundChunk]:
    """Return the live chunks of all hits, each once with the best of its scores, the best first."""
    best: dict[tuple[str, str, str], tuple[str, FoundChunk]] = {}
    for one in found:
        for hit in one.hits:
            document = documents.get((one.query.store.id, hit.document))
            if document is None or not is_current_match(hit, document, request):
                continue
            chunk = to_chunk(one.query.store.id, hit, document, to_score(hit.score, request))
            # By text: the same text may be in several chunks of a document.
            place = (chunk.store_id, chunk.document_id, chunk.text)
            if place not in best or order((hit.key, chunk)) < order(best[place]):
                best[place] = (hit.key, chunk)
    return [chunk for _, chunk in sorted(best.values(), key=order)]


def order(found: tuple[str, FoundChunk]) -> tuple[float, str, str, str]:
    key, chunk = found
    return -chunk.score, chunk.store_id, chunk.document_id, key


def is_current_match(hit: Hit, document: StoredDocument, request: SearchRequest) -> bool:
    """Return whether a hit is a chunk of a live document's active generation that matches the filter as it now is."""
    if document.deleted or document.generation != hit.generation:
        return False
    return request.filter is None or request.filter.matches(document.settings.attributes)


def to_chunk(store_id: str, hit: Hit, document: StoredDocument, score: float) -> FoundChunk:
    settings = document.settings
    return FoundChunk(
        store_id=store_id,
        document_id=settings.document_id,
        score=score,
        text=hit.text,
        filename=settings.filename,
        attributes=settings.attributes,
        metadata=settings.metadata | hit.metadata,
    )


def to_score(score: float, request: SearchRequest) -> float:
    """Return a score from 0 to 1.

    A cosine below 0 is 0. A BM25 score s becomes s / (s + 1). That of reciprocal rank fusion is divided by its maximum,
    which the first chunk of both lists has: 1 means first in both, and 0.5 first in one. A weighted score is a mean of
    scores from 0 to 1 already.
    """
    match request.mode:
        case "keyword":
            scaled = score / (score + 1) if score > 0 else 0.0
        case "hybrid" if isinstance(request.ranker, RRFRanker):
            scaled = score * (request.ranker.impact_factor + 1) / 2
        case _:
            scaled = score
    return min(max(scaled, 0.0), 1.0)
