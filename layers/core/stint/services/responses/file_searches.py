"""The file search of a response, made from its settings."""

from stint.domain.openai.file_search import FileSearchTool
from stint.domain.openai.stored_responses import ResponseSettings
from stint.domain.retrieval import RRFRanker, SearchRequest, WeightedRanker
from stint.loop.toolbox import ServerTool
from stint.services.responses.citations import can_be_cited, marker_of
from stint.services.responses.hosted_tools import is_plain
from stint.tools.knowledge.file_search import SIGNATURE, FileSearch, KnowledgeSearch
from stint.tools.port import FILE_SEARCH, KNOWLEDGE_SEARCH, Toolgroup


async def file_search(
    tool: FileSearchTool, knowledge: KnowledgeSearch, result_bytes: int, settings: ResponseSettings
) -> ServerTool:
    """Return the search of a tool's vector stores. The model cites what it finds, unless it writes JSON.

    Raises:
        NotFound: a store does not exist. The message names it.
        InvalidRequest: a store has expired.
    """
    opened = await knowledge.open(search_of(tool))
    provider = FileSearch(opened, result_bytes, known_marker if is_plain(settings) else None)
    return ServerTool(SIGNATURE, Toolgroup(FILE_SEARCH, FILE_SEARCH), provider, alias=KNOWLEDGE_SEARCH)


def search_of(tool: FileSearchTool) -> SearchRequest:
    """Return the search of a tool, without queries."""
    ranking = tool.ranking_options
    return SearchRequest(
        store_ids=list(dict.fromkeys(tool.vector_store_ids)),
        queries=(),
        max_results=tool.max_num_results,
        ranker=ranker_of(tool),
        filter=tool.filters,
        score_threshold=ranking.score_threshold if ranking else 0.0,
    )


def ranker_of(tool: FileSearchTool) -> RRFRanker | WeightedRanker:
    """Return the ranker of a hybrid search. Weights are scaled to a sum of 1."""
    weights = tool.ranking_options.hybrid_search if tool.ranking_options else None
    if weights is None:
        return RRFRanker()
    return WeightedRanker(alpha=weights.embedding_weight / (weights.embedding_weight + weights.text_weight))


def known_marker(document_id: str) -> str | None:
    return marker_of(document_id) if can_be_cited(document_id) else None
