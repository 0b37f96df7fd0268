"""The context of a query in vector dbs, in the words of Llama Stack.

The template of a chunk is text with placeholders, which are replaced once and not evaluated.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from stint.domain.content import TextContentItem
from stint.domain.errors import InvalidRequest
from stint.domain.llama_stack.rag import RAGQueryConfig, RAGQueryMetadata, RAGQueryResult
from stint.domain.retrieval import FoundChunk
from stint.retrieval.chunking.tokens import count_tokens

TOKEN_COUNT, METADATA_TOKEN_COUNT = "token_count", "metadata_token_count"
BEGIN = "knowledge_search tool found {count} chunks:\nBEGIN of knowledge_search tool results.\n"
END = "END of knowledge_search tool results.\n"
USE = (
    'The above results were retrieved to help answer the user\'s query: "{query}". Use them as supporting information '
    "only in answering this query.\n"
)

PLACEHOLDER = re.compile(r"\{\{|\}\}|\{([^{}]*)\}")
MAX_CONTEXT_LENGTH = 1_000_000
METADATA_FIELD = re.compile(r"(?:chunk\.)?metadata\[([^\[\]]+)\]")


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


def fill_chunk_template(template: str, index: int, text: str, metadata: Mapping[str, Any]) -> str:
    """Return the text of a chunk in the context.

    The placeholders are `{index}`, `{chunk.content}`, `{metadata}`, and `{metadata[KEY]}`, also with `chunk.` before
    it; `{{` and `}}` are braces.

    Raises:
        InvalidRequest: the template has another placeholder, the metadata of the chunk lacks a key, or the text is
            longer than a context may be.
    """
    size = 0

    def replace(found: re.Match[str]) -> str:
        nonlocal size
        value = value_of(found)
        # Counted while the text is made: a placeholder that occurs a thousand times would fill the memory first.
        size += len(value)
        refuse_long(size)
        return value

    def value_of(found: re.Match[str]) -> str:
        name = found[1]
        if name is None:
            return found[0][0]
        match name:
            case "index":
                return str(index)
            case "chunk.content":
                return text
            case "metadata" | "chunk.metadata":
                return str(dict(metadata))
        field = METADATA_FIELD.fullmatch(name)
        if field is None:
            raise unknown(f"{{{name}}}")
        if field[1] not in metadata:
            raise unusable(f"uses the metadata key {field[1]!r}, which a chunk that was found does not have")
        return str(metadata[field[1]])

    return PLACEHOLDER.sub(replace, template)


def refuse_long(size: int) -> None:
    """Raise InvalidRequest for a context of too many characters."""
    if size > MAX_CONTEXT_LENGTH:
        raise unusable(
            f"makes a context of more than {MAX_CONTEXT_LENGTH:,} characters. Use each placeholder once, and lower "
            "max_chunks or max_tokens_in_context"
        )


def unknown(placeholder: str) -> InvalidRequest:
    return unusable(
        f"has the unknown placeholder {placeholder[:100]}. The placeholders are {{index}}, {{chunk.content}}, "
        "{metadata} and {metadata[KEY]}; write {{ and }} for braces"
    )


def unusable(problem: str) -> InvalidRequest:
    return InvalidRequest(
        f"The chunk_template {problem}.", code="invalid_chunk_template", param="query_config.chunk_template"
    )
