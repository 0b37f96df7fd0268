"""Division of a text at its paragraphs and sentences, for OpenAI's chunking strategies `auto` and `static`."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import accumulate
from typing import cast

from stint.domain.token_estimates import CHARACTERS_PER_TOKEN
from stint.retrieval.chunking.tokens import DocumentChunk, count_tokens

AUTO_TOKENS, AUTO_OVERLAP = 800, 400
"""Chunk size and overlap of the strategy `auto`, in tokens."""

BLOCK_CHARACTERS = 16_384
"""Minimum size of a block. Larger chunks have larger blocks: one has at least eight chunks."""

SMALLEST_PART = 16
"""Tokens of the parts that chunks consist of, at least. A smaller overlap is not reached everywhere."""

LONG_RUN = re.compile(r"\n{5,}| {17,}|\t{17,}")
# With one kind of line break and one of blank, a block has few different separators, and semchunk few levels.
BLANKS = str.maketrans(
    dict.fromkeys("\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029", "\n")
    | dict.fromkeys("\x1f\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a", " ")
    | dict.fromkeys("\u202f\u205f\u3000", " ")
)
Span = tuple[int, int]


def chunk_static(text: str, max_tokens: int = AUTO_TOKENS, overlap: int = AUTO_OVERLAP) -> list[DocumentChunk]:
    """Return chunks of at most `max_tokens` tokens, of which up to `overlap` are also in the chunk before.

    They begin and end at the strongest separators that fit: empty lines, lines, sentences, words. White space is
    normalized first, and runs of it are shortened. `overlap` is at most half of `max_tokens`. Takes 2 s of CPU time per
    million tokens at most: call it in a thread.
    """
    text = normalize(text)
    size = max(min(overlap, max_tokens - overlap), SMALLEST_PART) if overlap else max_tokens
    spans = list(split(text, size))
    return list(merge(text, spans, max_tokens, overlap))


def normalize(text: str) -> str:
    """Return a text with only newlines, tabs and spaces as white space, in runs of at most 4, 16 and 16."""
    text = text.replace("\r\n", "\n").translate(BLANKS)
    return LONG_RUN.sub(lambda run: run[0][: 4 if run[0][0] == "\n" else 16], text)


def split(text: str, size: int) -> Iterator[Span]:
    """Yield the parts of a text, of at most `size` tokens, in order.

    semchunk takes quadratic time and a level of recursion for each length of a separator, so it is passed blocks.
    """
    from semchunk.semchunk import chunk  # noqa: PLC0415 - only the worker has it

    for start, end in find_blocks(text, max(BLOCK_CHARACTERS, 8 * CHARACTERS_PER_TOKEN * size)):
        # With `memoize`, every text that was counted would be kept until the process ends.
        found = chunk(text[start:end], size, count_tokens, memoize=False, offsets=True)
        spans = cast("list[Span]", found[1])
        yield from ((start + first, start + last) for first, last in spans)


def find_blocks(text: str, size: int) -> Iterator[Span]:
    """Yield blocks of up to `size` characters that cover the text and end after a paragraph, line or word if one does.

    A separator in the last quarter of a block is preferred to a stronger one before it.
    """
    start = 0
    while len(text) - start > size:
        near, most = start + 3 * size // 4, start + size
        found = (text.rfind(separator, near, most) + len(separator) for separator in ("\n\n", "\n", ". ", " "))
        end = next((place for place in found if place > near), most)
        yield start, end
        start = end
    yield start, len(text)


def merge(text: str, spans: list[Span], max_tokens: int, overlap: int) -> Iterator[DocumentChunk]:
    """Yield chunks of as many successive parts as fit, each of which ends after the one before."""
    # A part is counted with the white space after it.
    starts = [start for start, _ in spans]
    counts = (count_tokens(text[start:end]) for start, end in zip(starts, [*starts[1:], len(text)], strict=False))
    totals = list(accumulate(counts, initial=0))
    first, last = 0, 0
    while last < len(spans):
        end = max(bisect_right(totals, totals[first] + max_tokens) - 1, first + 1)
        if end > last:
            piece = text[spans[first][0] : spans[end - 1][1]].strip()
            yield DocumentChunk(piece, count_tokens(piece))
            last = end
        # At least one part further, so that there is an end whatever the overlap is.
        first = bisect_left(totals, totals[end] - overlap, first + 1, end)
