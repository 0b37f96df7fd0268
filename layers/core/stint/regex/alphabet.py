"""An alphabet that maps characters no pattern distinguishes to one letter."""

from bisect import bisect_right
from collections.abc import Iterable

from stint.regex.charset import Charset, is_word, variants_of

MOST_KNOWN = 30_000
"""Code points to cache, about 3 MB. A text in one language has fewer."""


class Alphabet(dict[int, str]):
    """A map from code points to letters, for `str.translate`. The letter with number n is `chr(n)`."""

    def __init__(self, charsets: Iterable[Charset], *, ignore_case: bool) -> None:
        super().__init__()
        self.ignore_case = ignore_case
        self.looked_up = 0
        """The number of code points that were looked up; each costs `price` steps."""
        self.price = 6 if ignore_case else 2
        self.samples: dict[int, str] = {}
        """One character for each number."""
        self._numbers: dict[tuple[object, ...], int] = {}
        ranges = {each for charset in charsets for each in charset.ranges}
        self._edges = sorted({edge for low, high in ranges for edge in (low, high + 1)})

    def __missing__(self, code: int) -> str:
        self.looked_up += 1
        char = chr(code)
        places = {bisect_right(self._edges, ord(each)) for each in self.variants_of(char)}
        # Two characters with the same signature lead to the same states from every set, so one letter stands for both.
        signature = (frozenset(places), is_word(char), char.isdecimal(), char.isspace())
        number = self._numbers.setdefault(signature, len(self._numbers))
        self.samples.setdefault(number, char)
        if len(self) < MOST_KNOWN:
            self[code] = chr(number)
        return chr(number)

    def variants_of(self, char: str) -> Iterable[str]:
        return variants_of(char) if self.ignore_case else (char,)
