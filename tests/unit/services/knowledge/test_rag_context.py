from typing import Any

import pytest

from stint.domain.errors import InvalidRequest
from stint.domain.llama_stack.rag import RAGQueryConfig
from stint.domain.retrieval import FoundChunk
from stint.services.knowledge.rag_context import build_context

EXPERTS = FoundChunk(
    "vs_1", "doc-1", 0.9, "Llama 4 Maverick has 128 experts.", metadata={"source": "card", "year": 2025}
)
GUANACOS = FoundChunk("vs_1", "doc-pct", 0.5, "Guanacos run fast.")


def context(*found: FoundChunk, **config: Any) -> list[str]:
    result = build_context(found, "How many experts?", RAGQueryConfig(**config))
    return [item.text for item in result.content or []]


def test_the_context_has_the_words_of_llama_stack() -> None:
    assert context(EXPERTS, GUANACOS) == [
        "knowledge_search tool found 2 chunks:\nBEGIN of knowledge_search tool results.\n",
        "Result 1\nContent: Llama 4 Maverick has 128 experts.\n"
        "Metadata: {'source': 'card', 'year': 2025, 'document_id': 'doc-1'}\n",
        "Result 2\nContent: Guanacos run fast.\nMetadata: {'document_id': 'doc-pct'}\n",
        "END of knowledge_search tool results.\n",
        'The above results were retrieved to help answer the user\'s query: "How many experts?". Use them as '
        "supporting information only in answering this query.\n",
    ]


def test_chunks_have_the_form_of_the_template() -> None:
    assert context(EXPERTS, GUANACOS, chunk_template="#{index} {chunk.content}\n")[1:3] == [
        "#1 Llama 4 Maverick has 128 experts.\n",
        "#2 Guanacos run fast.\n",
    ]


@pytest.mark.parametrize(
    ("template", "chunks"), [("{index}" + "{chunk.content}" * 600, 1), ("{index}{chunk.content}", 100)]
)
def test_a_context_has_a_maximum_size(template: str, chunks: int) -> None:
    found = [FoundChunk("vs_1", f"doc-{place}", 0.9, "word " * 4_000) for place in range(chunks)]

    with pytest.raises(InvalidRequest, match="a context of more than 1,000,000 characters"):
        context(*found, chunk_template=template, max_tokens_in_context=10**9)


def test_the_first_chunk_over_the_budget_ends_the_context_and_only_shown_chunks_are_named() -> None:
    one, none = (
        build_context([EXPERTS, GUANACOS], "?", RAGQueryConfig(max_tokens_in_context=tokens)) for tokens in (21, 5)
    )

    assert one.metadata.model_dump() == {"document_ids": ["doc-1"], "chunks": [EXPERTS.text], "scores": [0.9]}
    assert [(one.content or [])[0].text[:29], len(one.content or []), len(none.content or [])] == [
        "knowledge_search tool found 2",
        4,
        3,
    ]
    assert none.metadata.document_ids == []


def test_without_chunks_there_is_no_content() -> None:
    assert build_context([], "?", RAGQueryConfig()).model_dump() == {
        "content": None,
        "metadata": {"document_ids": [], "chunks": [], "scores": []},
    }


def test_attributes_and_the_filename_of_a_file_are_metadata_and_token_counts_are_not() -> None:
    chunk = FoundChunk(
        "vs_1", "file-1", 1, "x", "a.md", {"team": "blue"}, {"token_count": 1, "metadata_token_count": 1}
    )

    assert context(chunk, chunk_template="{index}{chunk.content}{metadata}")[1] == (
        "1x{'team': 'blue', 'filename': 'a.md', 'document_id': 'file-1'}"
    )
