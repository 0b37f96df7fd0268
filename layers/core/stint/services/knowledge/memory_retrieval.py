"""Retrieval from memory banks: the best chunks of several banks, in one context.

The vector stores of sessions have the large documents of their turns.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, zip_longest
from typing import Any

from stint.dataclasses import dataclass
from stint.domain.content import DocumentText, TextContentItem
from stint.domain.llama_stack.memory_retrieval import MemoryBankSelection, MemoryRetrievalArguments
from stint.domain.retrieval import FoundChunk, SearchRequest
from stint.domain.vector_stores import VectorStoreSettings, WindowChunking
from stint.services.knowledge.embedding_models import EmbeddingModels
from stint.services.knowledge.graph import GraphSearch, read_inserted_text
from stint.services.knowledge.insertions import Insertions, NewText
from stint.services.knowledge.query_generator import QueryGenerator
from stint.services.knowledge.rag import ChunkSearch
from stint.services.knowledge.rag_context import fitting
from stint.services.knowledge.vector_dbs import VectorDBs
from stint.store.failures import ConditionFailed
from stint.store.keys import document_key
from stint.store.parallel import map_concurrently
from stint.store.store import Store
from stint.tools.port import CallerSession, ToolOutcome

CHUNKS_OF_BANK = 5
BEGIN = "Here are the retrieved documents for relevant context:\n=== START-RETRIEVED-CONTEXT ===\n"
END = "\n=== END-RETRIEVED-CONTEXT ===\n"

CHUNK_TOKENS = 512


@dataclass(frozen=True, slots=True)
class MemoryRetrieval:
    """The retrieval from a tenant's memory banks."""

    search: ChunkSearch
    queries: QueryGenerator
    vector_dbs: VectorDBs
    graph: GraphSearch

    async def retrieve(self, arguments: Mapping[str, Any], session: CallerSession | None) -> ToolOutcome:
        """Return the context for a query; an empty one if nothing was found. The session's own bank is searched, too.

        Raises:
            ValidationError: the arguments are malformed.
            NotFound: a bank does not exist.
            InvalidRequest: there is no text, or the template of the query cannot be used.
            ModelError: the model that writes the query, or the one that embeds it, failed.
        """
        given = MemoryRetrievalArguments.model_validate(arguments)
        own = session.vector_db_id if session else None
        banks = [*given.memory_banks, *([MemoryBankSelection(bank_id=own)] if own else [])]
        if not banks:
            return ToolOutcome(content="")
        query = await self.queries.generate(given.query, given.query_generator_config)

        async def find(bank: MemoryBankSelection) -> Sequence[FoundChunk]:
            return await self.find_chunks(bank, query, session.session_id if session else None)

        # By rank before the limit, so that each bank has a part of the context.
        merged = list(merge_ranked(await map_concurrently(find, banks)))[: given.max_chunks]
        chunks = list(fitting(merged, given.max_tokens_in_context))
        if not chunks:
            return ToolOutcome(content="")
        lines = [f"id:{chunk.document_id}; content:{chunk.text}" for chunk in chunks]
        return ToolOutcome(content=[TextContentItem(text=text) for text in (BEGIN, *lines, END)])

    async def find_chunks(self, bank: MemoryBankSelection, query: str, session_id: str | None) -> Sequence[FoundChunk]:
        """Return the best chunks of a bank, or the documents with its ids or its entities."""
        [store_id] = await self.vector_dbs.resolve([bank.bank_id])
        if bank.type == "keyvalue":
            return await self.read_values(store_id, bank)
        if bank.type == "graph":
            await self.vector_dbs.open_store(store_id)
            return await self.graph.find(store_id, bank.entities, query, CHUNKS_OF_BANK)
        return await self.search.search(
            SearchRequest(
                store_ids=[store_id],
                queries=[query],
                max_results=CHUNKS_OF_BANK,
                mode="keyword" if bank.type == "keyword" else "hybrid",
                session=session_id,
            )
        )

    async def read_values(self, store_id: str, bank: MemoryBankSelection) -> Sequence[FoundChunk]:
        """Return the documents with the ids of a selection. Unknown ones are left out."""
        await self.vector_dbs.open_store(store_id)
        store, tenant = self.vector_dbs.store, self.vector_dbs.tenant
        keys = {document_key(key): key for key in bank.document_ids}
        found = await store.vector_store_documents.find(tenant, store_id, list(keys))
        texts = {key: await read_inserted_text(store, found[record]) for record, key in keys.items() if record in found}
        return [FoundChunk(store_id, key, 1.0, text) for key, text in texts.items() if text is not None]


def merge_ranked(found: Sequence[Sequence[FoundChunk]]) -> Iterator[FoundChunk]:
    """Yield the chunks of several banks by their rank. Scores of different searches cannot be compared."""
    return (chunk for chunk in chain.from_iterable(zip_longest(*found)) if chunk is not None)


@dataclass(frozen=True, slots=True)
class SessionStores:
    """The stores of a tenant's sessions."""

    tenant: str
    store: Store
    models: EmbeddingModels
    insertions: Insertions

    async def create(self, session_id: str, vector_db_id: str) -> None:
        """Create the store of a session, unless it exists, or the session was deleted."""
        settings = VectorStoreSettings(
            name=f"session {session_id}",
            embedding=await self.models.choose_for_store(),
            chunking=WindowChunking(size=CHUNK_TOKENS),
            owner=session_id,
        )
        with suppress(ConditionFailed):
            await self.store.vector_stores.create(self.tenant, vector_db_id, settings)

    async def insert(self, vector_db_id: str, documents: Sequence[tuple[str, DocumentText]], deadline: float) -> None:
        """Insert documents by their ids. When this returns, they can be found.

        Raises:
            InvalidRequest: a document cannot be ingested. The message has the reason.
            DeadlineExceeded: the worker still ingests documents.
        """
        texts = [NewText(document_id, each.text, {}) for document_id, each in documents]
        keys = await self.insertions.insert_texts(vector_db_id, texts, WindowChunking(size=CHUNK_TOKENS))
        await self.insertions.wait(vector_db_id, keys, deadline)
