"""Cutting of texts that an embedding model refuses as too long."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Literal

from stint.domain.errors import ContextLengthExceeded
from stint.retrieval.port import Embeddings, TextTooLong

MOST_CUTS = 12
KEPT_OF_LONGEST = 0.75
"""Where the limit is not known, no text is longer than this part of the longest one after a refusal."""

EmbedTexts = Callable[[Sequence[str]], Awaitable[Embeddings]]


async def embed_cut(embed: EmbedTexts, texts: Sequence[str], side: Literal["start", "end"] = "end") -> Embeddings:
    """Embed texts. The longest ones are cut at one side until the model accepts them.

    Raises:
        ContextLengthExceeded: it accepts none of the cut texts.
    """
    for _ in range(MOST_CUTS):
        try:
            return await embed(texts)
        except ContextLengthExceeded as error:
            most = error.characters if isinstance(error, TextTooLong) else KEPT_OF_LONGEST * max(map(len, texts))
            texts = cut(texts, max(int(most), 1), side)
    return await embed(texts)


def cut(texts: Sequence[str], most: int, side: Literal["start", "end"]) -> list[str]:
    """Return texts of at most so many characters, cut at one side."""
    return [text[:most] if side == "end" else text[-most:] for text in texts]
