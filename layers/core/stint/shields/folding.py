"""Texts in a form in which what looks alike is alike, made piece by piece: memory and time grow with the text alone."""

import re
import unicodedata
from collections.abc import Callable, Iterator

PIECE = 20_000
LONGEST_SEARCH = 100
"""Characters behind the end of a piece among which a place to cut is looked for."""
MOST_MARKS = 30
"""Combining marks in a row, as in Unicode's Stream-Safe Text Format (UAX #15, section 13).

Normalization sorts them, in a time that grows with the square of their number.
"""
MOST_KNOWN = 30_000


class CharacterTable(dict[int, str]):
    """A table for `str.translate` that is filled as characters are met; its size is bounded."""

    def __init__(self, map_character: Callable[[str], str]) -> None:
        super().__init__()
        self._map = map_character
        self.looked_up = 0
        """Characters that were not remembered, each about a microsecond."""

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
"""Characters of the category Cf of Unicode 16: they show nothing, and only tell how others are shown."""


def fold(text: str, *, case: bool) -> str:
    """Return a short text as a whole, without spaces around it."""
    return "".join(fold_pieces(text, case=case)).strip()


def fold_pieces(text: str, *, case: bool) -> Iterator[str]:
    """Yield a text without invisible characters, compatible characters as one, spaces as one; with `case`, letters
    keep theirs.
    """
    text = text if text.isascii() else INVISIBLE.sub("", text)
    begin, spaced = 0, True
    while begin < len(text):
        end = cut_place(text, begin + PIECE)
        piece = normalize(text[begin:end])
        words = " ".join(piece.split())
        folded = (" " if piece[:1].isspace() and not spaced else "") + words
        if words and piece[-1].isspace():
            folded += " "
        if folded:
            spaced = folded.endswith(" ")
            yield folded if case else folded.casefold()
        begin = end


def cut_place(text: str, place: int) -> int:
    """Return the first place from `place` on where characters do not combine with those before."""
    for end in range(place, min(place + LONGEST_SEARCH, len(text))):
        before, char = text[end - 1], text[end]
        if unicodedata.combining(char):
            continue
        apart = unicodedata.normalize("NFKC", before) + unicodedata.normalize("NFKC", char)
        if unicodedata.normalize("NFKC", before + char) == apart:
            return end
    return min(place + LONGEST_SEARCH, len(text))


def normalize(piece: str) -> str:
    if piece.isascii():
        return piece
    kept, begin = [], 0
    for end, following in long_runs(piece):
        kept.append(piece[begin:end])
        begin = following
    return unicodedata.normalize("NFKC", "".join([*kept, piece[begin:]]))


def long_runs(piece: str) -> Iterator[tuple[int, int]]:
    """Yield where a run of combining marks has more than MOST_MARKS, from the first mark too many on.

    Such a run has a mark at one of any MOST_MARKS + 1 places in a row, so not every character is looked at.
    """
    place = 0
    while place < len(piece):
        begin = end = place
        while end < len(piece) and unicodedata.combining(piece[end]):
            end += 1
        while begin and unicodedata.combining(piece[begin - 1]) and end > place:
            begin -= 1
        if end - begin > MOST_MARKS:
            yield begin + MOST_MARKS, end
        place = end + MOST_MARKS
