"""The search of vector stores as a tool of a response.

The stores are read when the response is planned, so that a store which does not exist is an error of the request with a
status. The tool then only embeds the model's queries and searches.

What is found is written twice: as text for the model, one item for each chunk, and without its text in the metadata,
from which the item of the response is made (`results`, if the client asks for them). The texts are in the content
alone; each begins in the second line of its item. Both must stay in step, so a chunk that does not fit into the limit
is dropped from both, with all that follow.

With `marker_of`, each chunk has a marker, and the model is asked to repeat it: citations are read from the markers in
its answer.
"""

import json
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from stint.dataclasses import dataclass
from stint.domain.content import Content, TextContentItem
from stint.domain.inference import ToolSignature
from stint.domain.retrieval import FoundChunk, SearchRequest
from stint.tools.outcomes import failure, write_json
from stint.tools.port import FILE_SEARCH, RESULTS, Invocation, Toolgroup, ToolOutcome

MAX_QUERIES = 10
"""Maximum queries of one call. Each of them is embedded and searched."""

SIGNATURE = ToolSignature(
    FILE_SEARCH,
    "Search the user's files for information.",
    {
        "type": "object",
        "properties": {
            "query": {
                "type": "string",
                "description": "The query to search for. Can be a natural language sentence or keywords.",
            },
            "queries": {
                "type": "array",
                "items": {"type": "string"},
                "description": f"Up to {MAX_QUERIES - 1} further queries, which are searched together with it.",
            },
        },
        "required": ["query"],
    },
    repeatable=True,
)
BEGIN = "file_search tool found {count} chunks:\nBEGIN of file_search tool results.\n"
END = "END of file_search tool results.\n"
NOTE = (
    "The above results were retrieved to help answer the user's query: {query}. Use them as supporting information "
    "only in answering this query.\n"
)
CITE = "After each statement that is based on a result, write the marker that follows 'cite as' in that result.\n"

MarkerOf = Callable[[str], str | None]
"""A function that returns the marker with which a model cites a document; None if it cannot be cited."""


class OpenSearch(Protocol):
    """A search in vector stores that were read."""

    async def search(self, queries: Sequence[str], /) -> list[FoundChunk]:
        """Return the chunks that were found, the best first.

        Raises:
            StintError: a store does not exist any more, or the search failed.
        """
        ...


class KnowledgeSearch(Protocol):
    """The search of a tenant's vector stores."""

    async def open(self, request: SearchRequest, /) -> OpenSearch:
        """Read the stores of a search.

        Raises:
            NotFound: one of them does not exist.
            InvalidRequest: one of them has expired.
        """
        ...


@dataclass(frozen=True, slots=True)
class FileSearch:
    """The tool of one response. The queries come from the model.

    Results beyond `result_bytes` are dropped whole. With `marker_of`, the model is asked to cite them.
    """

    opened: OpenSearch
    result_bytes: int
    marker_of: MarkerOf | None = None

    async def check(self, _: Toolgroup, /) -> None:
        """Accept any toolgroup: it configures nothing."""

    def known_tools(self, _: Toolgroup, __: dict[str, Any], /) -> list[ToolSignature]:
        """List the one tool; see the port."""
        return [SIGNATURE]

    async def list_tools(self, _: Toolgroup, __: dict[str, Any], /) -> list[ToolSignature]:
        """List the one tool; see the port."""
        return [SIGNATURE]

    async def invoke(self, _: Toolgroup, invocation: Invocation, /) -> ToolOutcome:
        """Search; see the port."""
        queries = queries_of(invocation.arguments)
        if not queries or len(queries) > MAX_QUERIES:
            return failure(
                f'The argument "query" must be a string, or "queries" a list of 1 to {MAX_QUERIES} strings, none empty.'
            )
        found = await self.opened.search(queries)
        items = [TextContentItem(text=self.write_chunk(place, chunk)) for place, chunk in enumerate(found, 1)]
        note = NOTE.format(query=write_json(" ".join(queries))) + (CITE if self.marker_of and found else "")
        # The toolbox cuts a longer result by bytes, in the middle of a chunk; this one fits, with its frame.
        fit = count_fitting(items, self.result_bytes - len(f"{BEGIN}{END}{note}".encode()) - len(str(len(items))))
        content: Content = [
            TextContentItem(text=BEGIN.format(count=fit)),
            *items[:fit],
            TextContentItem(text=END),
            TextContentItem(text=note),
        ]
        return ToolOutcome(content=content, metadata={RESULTS: [write_result(chunk) for chunk in found[:fit]]})

    def write_chunk(self, place: int, chunk: FoundChunk) -> str:
        """Return a chunk for the model. Its text begins in the second line."""
        marker = self.marker_of(chunk.document_id) if self.marker_of else None
        header = {
            "document_id": json.dumps(chunk.document_id) if "\n" in chunk.document_id else chunk.document_id,
            "filename": write_json(chunk.filename),
            "score": chunk.score,
            "attributes": write_json(chunk.attributes),
        }
        cited = f", cite as {marker}" if marker else ""
        return f"[{place}] {', '.join(f'{key}: {value}' for key, value in header.items())}{cited}\n{chunk.text}\n"


def queries_of(arguments: dict[str, Any]) -> list[str]:
    """Return the queries of a call; none if one of them is not a text."""
    first, further = arguments.get("query"), arguments.get("queries") or []
    if not isinstance(further, list):
        return []
    queries = further if first is None else [first, *further]
    if not all(isinstance(query, str) and query.strip() for query in queries):
        return []
    return queries


def count_fitting(items: Sequence[TextContentItem], limit: int) -> int:
    """Return how many of the first texts have at most `limit` bytes together."""
    for count, item in enumerate(items):
        limit -= len(item.text.encode())
        if limit < 0:
            return count
    return len(items)


def write_result(chunk: FoundChunk) -> dict[str, Any]:
    """Return a result without its text."""
    return {
        "file_id": chunk.document_id,
        "filename": chunk.filename,
        "score": chunk.score,
        "attributes": dict(chunk.attributes),
    }
