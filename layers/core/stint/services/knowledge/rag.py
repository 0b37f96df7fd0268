"""Retrieval of context from vector dbs, for the rag-tool and the tool knowledge_search."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

from pydantic import ValidationError

from stint.dataclasses import dataclass
from stint.domain.content import Content
from stint.domain.errors import InvalidRequest
from stint.domain.llama_stack.rag import KnowledgeSearchArguments, RAGQueryConfig, RAGQueryResult
from stint.domain.retrieval import FoundChunk, RRFRanker, SearchRequest
from stint.domain.validation import describe_faults
from stint.services.knowledge.query_generator import QueryGenerator, texts_of
from stint.services.knowledge.rag_context import build_context
from stint.tools.outcomes import failure
from stint.tools.port import MEMORY_BANKS, CallerSession, ToolOutcome

NO_VECTOR_DBS = "No vector DBs were provided to the knowledge search tool. Please provide at least one vector DB ID."
NOTHING_FOUND = "knowledge_search tool found no chunks."

ResolveNames = Callable[[Sequence[str]], Awaitable[Sequence[str]]]
"""A function that returns the vector stores of vector dbs. Raises NotFound."""


RetrieveMemory = Callable[[Mapping[str, Any], CallerSession | None], Awaitable[ToolOutcome]]
"""A function that retrieves from memory banks. Raises StintError and ValidationError."""


class ChunkSearch(Protocol):
    """The search in vector stores."""

    async def search(self, request: SearchRequest) -> list[FoundChunk]:
        """Return the chunks that were found, the best first. Raises NotFound for an unknown store."""
        ...


@dataclass(frozen=True, slots=True)
class RAG:
    """The retrieval of a tenant's context."""

    search: ChunkSearch
    queries: QueryGenerator
    resolve_names: ResolveNames
    retrieve_memory: RetrieveMemory

    async def query(
        self, content: Content, vector_db_ids: Sequence[str], config: RAGQueryConfig, session_id: str | None = None
    ) -> RAGQueryResult:
        """Return the context for content from vector dbs. `session_id` is the session whose own store may be searched.

        Raises:
            InvalidRequest: no vector db is named, or the settings cannot be used.
            NotFound: a vector db does not exist.
            ModelError: the model that writes the query, or the one that embeds it, failed.
        """
        if not vector_db_ids:
            raise InvalidRequest(NO_VECTOR_DBS, param="vector_db_ids")
        store_ids = await self.resolve_names(list(dict.fromkeys(vector_db_ids)))
        query = await self.queries.generate(content, config.query_generator_config)
        found = await self.search.search(
            SearchRequest(
                store_ids=store_ids,
                queries=[query],
                max_results=config.max_chunks,
                mode=config.mode or "vector",
                ranker=config.ranker or RRFRanker(),
                session=session_id,
            )
        )
        return build_context(found, " ".join(texts_of(content)), config)

    async def search_knowledge(self, arguments: Mapping[str, Any], session: CallerSession | None) -> ToolOutcome:
        """Run the tool knowledge_search. The session's own vector db is searched, too.

        Raises:
            StintError: as `query`.
        """
        try:
            if MEMORY_BANKS in arguments:
                return await self.retrieve_memory(arguments, session)
            given = KnowledgeSearchArguments.model_validate(arguments)
        except ValidationError as error:
            # The model wrote the arguments, and can correct them when it reads this.
            return failure(f"The arguments of the search are invalid: {describe_faults(error)}")
        own = session.vector_db_id if session else None
        named = [*given.vector_db_ids, *([own] if own else [])]
        result = await self.query(given.query, named, given.query_config, session.session_id if session else None)
        return ToolOutcome(
            content=[*result.content] if result.content else NOTHING_FOUND, metadata=dict(result.metadata)
        )
