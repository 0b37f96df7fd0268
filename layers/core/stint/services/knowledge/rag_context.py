"""The context of a query in vector dbs, in the words of Llama Stack."""

from collections.abc import Iterator, Sequence
from typing import Any

from stint.domain.content import TextContentItem
from stint.domain.llama_stack.rag import RAGQueryConfig, RAGQueryMetadata, RAGQueryResult
from stint.domain.retrieval import FoundChunk
from stint.retrieval.chunking.tokens import count_tokens
from stint.services.knowledge.chunk_template import fill_chunk_template, refuse_long

TOKEN_COUNT, METADATA_TOKEN_COUNT = "token_count", "metadata_token_count"
BEGIN = "knowledge_search tool found {count} chunks:\nBEGIN of knowledge_search tool results.\n"
END = "END of knowledge_search tool results.\n"
USE = (
    'The above results were retrieved to help answer the user\'s query: "{query}". Use them as supporting information '
    "only in answering this query.\n"
)


def build_context(found: Sequence[FoundChunk], query: str, config: RAGQueryConfig) -> RAGQueryResult:
    """Return the context of the chunks that were found; without content if there are none.

    It has the chunks whose tokens fit, up to the first one that does not; the count in its first line is that of all.

    Raises:
        InvalidRequest: the chunk template has an unknown placeholder, or the context is too long.
    """
    if not found:
        return RAGQueryResult()
    shown, chunks, size = list(fitting(found, config.max_tokens_in_context)), list[str](), 0
    for index, chunk in enumerate(shown, 1):
        chunks.append(fill_chunk_template(config.chunk_template, index, chunk.text, metadata_of(chunk)))
        refuse_long(size := size + len(chunks[-1]))
    texts = [
        BEGIN.format(count=len(found)),
        *chunks,
        END,
        USE.replace("{query}", query),
    ]
    metadata = RAGQueryMetadata(
        document_ids=[chunk.document_id for chunk in shown],
        chunks=[chunk.text for chunk in shown],
        scores=[chunk.score for chunk in shown],
    )
    return RAGQueryResult(content=[TextContentItem(text=text) for text in texts], metadata=metadata)


def fitting(found: Sequence[FoundChunk], max_tokens: int) -> Iterator[FoundChunk]:
    """Yield the chunks up to the first one with which they have more tokens, with those of their metadata."""
    total = 0
    for chunk in found:
        total += sum(token_counts(chunk).values())
        if total > max_tokens:
            return
        yield chunk


def metadata_of(chunk: FoundChunk) -> dict[str, Any]:
    """Return the metadata of a chunk with its document's id, and without token counts."""
    own = {key: value for key, value in chunk.metadata.items() if key not in (TOKEN_COUNT, METADATA_TOKEN_COUNT)}
    named = {"filename": chunk.filename} if chunk.filename else {}
    return {**own, **chunk.attributes, **own, **named, "document_id": chunk.document_id}


def token_counts(chunk: FoundChunk) -> dict[str, int]:
    """Return the approximate tokens of a chunk and of its metadata, under their names in the metadata."""
    return {TOKEN_COUNT: count_tokens(chunk.text), METADATA_TOKEN_COUNT: count_tokens(str(chunk.metadata))}
