"""Queries of memory banks of October 2024.

the bank     finds                                                 by
vector       chunks, ranked by their meaning and their words       the query's text
keyword      chunks, ranked by their words                         the query's text
keyvalue     whole documents, in the order of their ids            the ids in the query or in its params
graph        documents that share entities, or are a link away     the entities in its params, or in the text
"""

from collections.abc import Sequence
from typing import Any

from stint.dataclasses import dataclass
from stint.domain.content import text_of
from stint.domain.entities import LONGEST_NAME, MOST_NAMED, is_list_of_names
from stint.domain.errors import InvalidRequest
from stint.domain.llama_stack.rag import MAX_CHUNKS, MAX_QUERY_LENGTH
from stint.domain.retrieval import SearchRequest
from stint.october_2024.banks import MemoryBanks
from stint.october_2024.contents import to_content
from stint.october_2024.schemas.memory import BankChunk, MemoryQueryRequest, MemoryQueryResponse
from stint.october_2024.schemas.messages import OctoberContent
from stint.october_2024.stored_banks import read_stored
from stint.retrieval.chunking.tokens import count_tokens
from stint.services.knowledge.graph import GraphSearch
from stint.services.knowledge.rag import ChunkSearch
from stint.store.vector_stores import StoredVectorStore

DEFAULT_CHUNKS = 3


@dataclass(frozen=True, slots=True)
class BankQueries:
    """Queries of a tenant's memory banks."""

    banks: MemoryBanks
    search: ChunkSearch
    graph: GraphSearch

    async def query(self, request: MemoryQueryRequest) -> MemoryQueryResponse:
        """Return the chunks that fit a query best.

        Of a keyvalue bank, they are the documents with the ids of the query; of a graph bank, those with its entities.

        Raises:
            NotFound: the bank does not exist.
            InvalidRequest: the query has no text, or a parameter cannot be used.
        """
        text = text_of(to_content(request.query)).strip()
        most = read_max_chunks(request.params)
        stored = await self.banks.open(request.bank_id)
        bank = read_stored(stored)
        if bank.type == "keyvalue":
            return await self.read_values(stored, read_keys(request.params, text))
        entities = read_entities(request.params)
        if not text and not (bank.type == "graph" and entities):
            raise InvalidRequest("The query has no text.", param="query")
        if bank.type == "graph":
            found = await self.graph.find(stored.id, entities, text[:MAX_QUERY_LENGTH], most)
        else:
            found = await self.search.search(
                SearchRequest(
                    store_ids=[stored.id],
                    queries=[text[:MAX_QUERY_LENGTH]],
                    max_results=most,
                    mode="keyword" if bank.type == "keyword" else "hybrid",
                )
            )
        return MemoryQueryResponse(
            chunks=[to_chunk(one.document_id, one.text) for one in found], scores=[one.score for one in found]
        )

    async def read_values(self, stored: StoredVectorStore, document_ids: Sequence[str]) -> MemoryQueryResponse:
        """Return whole documents by their ids. Unknown ones are left out."""
        found = await self.banks.find_documents(stored, document_ids)
        chunks = [to_chunk(name, text_in(found[name].content)) for name in document_ids if name in found]
        return MemoryQueryResponse(chunks=chunks, scores=[1.0] * len(chunks))


def read_max_chunks(params: dict[str, Any]) -> int:
    """Return the maximum of chunks. Raises InvalidRequest."""
    most = params.get("max_chunks", DEFAULT_CHUNKS)
    if not isinstance(most, int) or not 1 <= most <= MAX_CHUNKS:
        raise InvalidRequest(f"params.max_chunks must be a number from 1 to {MAX_CHUNKS}.", param="params.max_chunks")
    return most


def read_keys(params: dict[str, Any], text: str) -> list[str]:
    """Return the ids of the documents that a query of a keyvalue bank names. Raises InvalidRequest."""
    keys = params.get("keys")
    if keys is None:
        return [text]
    if not isinstance(keys, list) or len(keys) > MAX_CHUNKS or not all(isinstance(key, str) for key in keys):
        raise InvalidRequest(f"params.keys must be a list of at most {MAX_CHUNKS} ids.", param="params.keys")
    return keys[: params.get("max_chunks", MAX_CHUNKS)]


def read_entities(params: dict[str, Any]) -> list[str]:
    """Return the entities that a query of a graph bank names. Raises InvalidRequest."""
    entities = params.get("entities", [])
    if not is_list_of_names(entities, MOST_NAMED):
        message = f"params.entities must be a list of at most {MOST_NAMED} names with up to {LONGEST_NAME} characters."
        raise InvalidRequest(message, param="params.entities")
    return list(entities)


def to_chunk(document_id: str, text: str) -> BankChunk:
    return BankChunk(content=text, token_count=count_tokens(text), document_id=document_id)


def text_in(content: Any) -> str:
    """Return the text of a stored document."""
    known: OctoberContent = content
    return text_of(to_content(known))
