"""Folding of texts, so that what looks alike becomes equal. It works in pieces, in linear time and memory."""

import re
import unicodedata
from collections.abc import Callable, Iterator

from stint.regex.normalization import normalize

PIECE = 20_000
LONGEST_SEARCH = 100
"""Characters after the end of a piece that are searched for a position to cut."""
MOST_KNOWN = 30_000


class CharacterTable(dict[int, str]):
    """A table for `str.translate` that is filled when characters are looked up; its size is bounded."""

    def __init__(self, map_character: Callable[[str], str]) -> None:
        super().__init__()
        self._map = map_character
        self.looked_up = 0
        """The number of cache misses, about a microsecond each."""

    def __missing__(self, code: int) -> str:
        self.looked_up += 1
        mapped = self._map(chr(code))
        if len(self) < MOST_KNOWN:
            self[code] = mapped
        return mapped


INVISIBLE = re.compile(
    "[\u00ad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f"
    "\ufeff\ufff9-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0001\U000e0020-\U000e007f]+"
)
"""Characters of the category Cf of Unicode 16. They are invisible and control how others are displayed."""


def fold(text: str, *, case: bool) -> str:
    """Fold a short text, and strip it."""
    return "".join(fold_pieces(text, case=case)).strip()


def fold_pieces(text: str, *, case: bool) -> Iterator[str]:
    """Yield a text without invisible characters and with compatible characters and spaces unified; `case` keeps the
    case of letters.
    """
    text = text if text.isascii() else INVISIBLE.sub("", text)
    begin, spaced = 0, True
    while begin < len(text):
        end = cut_place(text, begin + PIECE)
        piece = normalize(text[begin:end])
        words = " ".join(piece.split())
        # A run of spaces may go on over a cut, and is one space all the same.
        folded = (" " if piece[:1].isspace() and not spaced else "") + words
        if words and piece[-1].isspace():
            folded += " "
        if folded:
            spaced = folded.endswith(" ")
            yield folded if case else folded.casefold()
        begin = end


def cut_place(text: str, place: int) -> int:
    """Return the first position at or after `place` whose character does not combine with the one before."""
    for end in range(place, min(place + LONGEST_SEARCH, len(text))):
        before, char = text[end - 1], text[end]
        if unicodedata.combining(char):
            continue
        # Some characters compose without being combining ones, such as the parts of a Hangul syllable.
        apart = unicodedata.normalize("NFKC", before) + unicodedata.normalize("NFKC", char)
        if unicodedata.normalize("NFKC", before + char) == apart:
            return end
    return min(place + LONGEST_SEARCH, len(text))
