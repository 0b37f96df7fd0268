"""The file search as a tool: queries, the text for the model, and its limit."""

from collections.abc import Sequence
from typing import Any

import pytest

from stint.domain.content import text_of
from stint.domain.retrieval import FoundChunk
from stint.tools.knowledge.file_search import MAX_QUERIES, FileSearch
from stint.tools.outcomes import size_of
from stint.tools.port import RESULTS, Invocation, Toolgroup, ToolOutcome

GROUP = Toolgroup("file_search", "file_search")
CHUNKS = [FoundChunk("vs_1", f"file-{n}", 1 / (n + 1), "é" * 500, f"{n}.txt", {"n": n}) for n in range(5)]


class Chunks:
    """A search that finds chunks for any query."""

    def __init__(self, chunks: list[FoundChunk]) -> None:
        self.chunks = chunks
        self.queries: list[str] = []

    async def search(self, queries: Sequence[str], /) -> list[FoundChunk]:
        self.queries = list(queries)
        return self.chunks


async def call(knowledge: Chunks, result_bytes: int = 10_000, *, cites: bool = True, **arguments: Any) -> ToolOutcome:
    marker_of = (lambda document_id: f"<|{document_id}|>") if cites else None
    tool = FileSearch(knowledge, result_bytes, marker_of)
    return await tool.invoke(GROUP, Invocation("file_search", arguments, "call_1"))


async def test_the_model_reads_the_chunks_in_a_frame_with_their_markers() -> None:
    found = FoundChunk("vs_1", "file-1", 0.5, "Llamas hum.", 'a\n"b".txt', {"kind": "animal"})

    outcome = await call(Chunks([found]), query='a "sound"')

    assert text_of(outcome.content) == (
        "file_search tool found 1 chunks:\nBEGIN of file_search tool results.\n\n"
        '[1] document_id: file-1, filename: "a\\n\\"b\\".txt", score: 0.5, attributes: {"kind":"animal"}, '
        "cite as <|file-1|>\nLlamas hum.\n\n"
        "END of file_search tool results.\n\n"
        'The above results were retrieved to help answer the user\'s query: "a \\"sound\\"". Use them as supporting '
        "information only in answering this query.\n"
        "After each statement that is based on a result, write the marker that follows 'cite as' in that result.\n"
    )


async def test_without_citations_the_model_gets_no_markers() -> None:
    outcome = await call(Chunks(CHUNKS), cites=False, query="a")

    assert "cite" not in text_of(outcome.content)


@pytest.mark.parametrize(("result_bytes", "fit"), [(100, 0), (2_000, 1), (4_000, 3), (100_000, 5)])
async def test_chunks_over_the_limit_are_dropped_whole(result_bytes: int, fit: int) -> None:
    outcome = await call(Chunks(CHUNKS), result_bytes, query="a")

    assert [result["file_id"] for result in outcome.metadata[RESULTS]] == [f"file-{n}" for n in range(fit)]
    assert text_of(outcome.content).count("é" * 500) == fit
    assert f"found {fit} chunks" in text_of(outcome.content)
    assert fit == 0 or size_of(outcome.content) <= result_bytes


async def test_several_queries_are_one_search() -> None:
    knowledge = Chunks(CHUNKS)

    await call(knowledge, queries=["one", "two"])

    assert knowledge.queries == ["one", "two"]


@pytest.mark.parametrize(
    "arguments", [{}, {"query": ""}, {"query": 5}, {"queries": ["a", 5]}, {"queries": ["a"] * (MAX_QUERIES + 1)}]
)
async def test_bad_arguments_are_a_message_for_the_model(arguments: dict[str, Any]) -> None:
    knowledge = Chunks(CHUNKS)

    outcome = await call(knowledge, **arguments)

    assert outcome.error
    assert '"query" must be a string' in text_of(outcome.content)
    assert knowledge.queries == []
