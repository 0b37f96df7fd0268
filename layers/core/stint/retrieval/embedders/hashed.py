"""Embeddings of words only, computed without a model: deterministic, offline and fast."""

import asyncio
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import Literal

from stint.domain.entities import WORD
from stint.regex.normalization import normalize
from stint.retrieval.dimensions import hashed_dimension
from stint.retrieval.port import Embeddings, Vector

WITHOUT_SPACES = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]")
"""Characters of scripts whose words have no spaces between them, or take suffixes: Japanese, Chinese, Korean."""
FUNCTION_WORDS = frozenset(
    re.findall(
        r"\w+",
        "a about after all also an and any are as at be been but by can could did do does for from had has "
        "have he her his how i if in into is it its may me more my no not of on or our she should so some "
        "than that the their them then there these they this those to was we were what when where which who "
        "why will with would you your ",
    )
)
FUNCTION_WORD_WEIGHT = 0.1
COMPONENTS = 4
"""Components of a vector that a word changes. With several, two words are rarely confused."""


class HashedWords:
    """The models `words-N`: vectors of N components, at most 4096, from the words of a text by feature hashing.

    Texts are similar if they share words. Synonyms, inflections and translations are different words. Common English
    function words count little. A text without words has a zero vector.

    Weinberger et al., "Feature Hashing for Large Scale Multitask Learning", ICML 2009.
    """

    def dimension(self, model_id: str) -> int:
        """Return the dimension in a model's id; see the port."""
        return hashed_dimension(model_id)

    async def embed(
        self,
        model_id: str,
        texts: Sequence[str],
        *,
        kind: Literal["document", "query"] = "document",  # noqa: ARG002 - both are embedded alike
        dimensions: int | None = None,
    ) -> Embeddings:
        """Embed texts, in a thread; see the port."""
        dimension = self.dimension(model_id if dimensions is None else f"words-{dimensions}")
        return await asyncio.to_thread(embed_words, texts, dimension)


def embed_words(texts: Sequence[str], dimension: int) -> Embeddings:
    """Embed texts. `tokens` is the number of their words."""
    counts = [Counter(words_of(text)) for text in texts]
    return Embeddings([embed_counts(each, dimension) for each in counts], sum(each.total() for each in counts))


def embed_counts(counts: Counter[str], dimension: int) -> Vector:
    """Return the normalised vector of a text with these words."""
    vector = [0.0] * dimension
    for word, count in counts.items():
        weight = 1.0 + math.log(count)
        if word in FUNCTION_WORDS:
            weight *= FUNCTION_WORD_WEIGHT
        digest = blake2b(word.encode(), digest_size=4 * COMPONENTS).digest()
        for start in range(0, len(digest), 4):
            # The sign lets words that share a component cancel out on average.
            number = int.from_bytes(digest[start : start + 4], "little")
            vector[(number >> 1) % dimension] += weight if number & 1 else -weight
    length = math.sqrt(math.fsum(each * each for each in vector))
    return [each / length for each in vector] if length else vector


def words_of(text: str) -> Iterator[str]:
    """Yield the words of a text, in lower case. Scripts without spaces yield pairs of characters."""
    for word in WORD.findall(normalize(text).casefold()):
        if len(word) > 1 and WITHOUT_SPACES.search(word):
            yield from (word[at : at + 2] for at in range(len(word) - 1))
        else:
            yield word
