"""Division of a text into overlapping windows of tokens, as Llama Stack does."""

from stint.domain.errors import InvalidRequest
from stint.retrieval.chunking.tokens import DocumentChunk, find_token_starts

MAX_WINDOWS = 100_000
"""Maximum windows of a text: as many as the longest text has at 100 tokens, half of which overlap."""


def chunk_windows(text: str, size: int, overlap: int | None = None) -> list[DocumentChunk]:
    """Return windows of `size` tokens, each `size - overlap` tokens after the one before.

    The last window may have only tokens of the one before. Windows of white space are left out. The overlap is a
    quarter of the size unless it is passed.

    Raises:
        InvalidRequest: the size is not positive, not larger than the overlap, or too small for the length of the text.
    """
    overlap = size // 4 if overlap is None else overlap
    if size < 1 or not 0 <= overlap < size:
        message = f"A chunk needs at least one token, and more than it overlaps; {size} with {overlap} is invalid."
        raise InvalidRequest(message, param="chunk_size_in_tokens")
    starts = find_token_starts(text)
    count = len(starts) - 1
    if count > MAX_WINDOWS * (size - overlap):
        message = f"The text has {count:,} tokens, so chunks of {size:,} would be more than {MAX_WINDOWS:,}. "
        raise InvalidRequest(f"{message}Choose larger chunks, or split the text.", param="chunk_size_in_tokens")
    chunks: list[DocumentChunk] = []
    for first in range(0, count, size - overlap):
        end = min(first + size, count)
        window = text[starts[first] : starts[end]]
        if not window.isspace():
            chunks.append(DocumentChunk(window, end - first))
    return chunks
