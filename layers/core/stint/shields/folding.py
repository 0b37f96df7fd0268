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


class CharacterTable(dict[int, str | None]):
    """A table for `str.translate` that is filled as characters are met; its size is bounded."""

    def __init__(self, map_character: Callable[[str], str | None]) -> None:
        super().__init__()
        self._map = map_character

    def __missing__(self, code: int) -> str | None:
        mapped = self._map(chr(code))
        if len(self) < MOST_KNOWN:
            self[code] = mapped
        return mapped


VISIBLE = CharacterTable(lambda char: None if unicodedata.category(char) == "Cf" else char)
MARKS = CharacterTable(lambda char: "m" if unicodedata.combining(char) else ".")
TOO_MANY_MARKS = re.compile(f"(?<=m{{{MOST_MARKS}}})m+")


def fold(text: str, *, case: bool) -> str:
    """Return a short text as a whole, without spaces around it."""
    return "".join(fold_pieces(text, case=case)).strip()


def fold_pieces(text: str, *, case: bool) -> Iterator[str]:
    """Yield a text without invisible characters, compatible characters as one, spaces as one; with `case`, letters
    keep theirs.
    """
    text = text if text.isascii() else text.translate(VISIBLE)
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
    runs = [found.span() for found in TOO_MANY_MARKS.finditer(piece.translate(MARKS))]
    for begin, end in reversed(runs):
        piece = piece[:begin] + piece[end:]
    return unicodedata.normalize("NFKC", piece)
