"""Words of a text, for BM25."""

import re
from hashlib import blake2b

from stint.regex.normalization import normalize

IDEOGRAPHS = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
"""Hiragana, Katakana and Han, which are written without spaces: each is a word, as for Lucene's StandardTokenizer."""
QUERY_CHARACTERS = 1_024
"""Maximum length of a query that S3 Vectors accepts."""

WORD = re.compile(rf"[{IDEOGRAPHS}]|[^\W_{IDEOGRAPHS}]+")


def words(text: str) -> list[str]:
    """Return the words of a text in lower case, without punctuation. All are kept: frequent ones weigh little."""
    return WORD.findall(normalize(text).lower())


def number_of(word: str) -> int:
    """Return 64 bits of a word's hash. Blocks store these instead of words."""
    return int.from_bytes(blake2b(word.encode(), digest_size=8).digest(), "little")


def query_text(text: str) -> str:
    """Return the beginning of a text, up to a whole word, or nothing if it has no words."""
    searchable = text.encode("utf-8", "replace").decode().replace("\0", " ").strip()
    cut = searchable[:QUERY_CHARACTERS]
    if len(searchable) > len(cut) and len(cut.split()) > 1:
        cut = cut.rsplit(maxsplit=1)[0] if not searchable[QUERY_CHARACTERS].isspace() else cut
    return cut if words(cut) else ""
