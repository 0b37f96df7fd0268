"""Sets of characters, such as `[a-z\\d]`, `.` or a single letter of a regular expression."""

from bisect import bisect_right
from collections.abc import Iterable
from functools import cache

from stint.dataclasses import dataclass

SPECIAL = "\u0131\u017f\u03c2\u00b5\u0345\u1fbe\u03d0\u03d1\u03d5\u03d6\u03f0\u03f1\u03f5"
SPECIAL += "\u1e9b\u1c80\u1c81\u1c82\u1c83\u1c84\u1c85\u1c86\u1c87\u1c88"
"""Second lowercase forms of letters, such as the long s. CaseFolding.txt of Unicode folds each to another letter."""


@dataclass(frozen=True, slots=True)
class Charset:
    """Sorted, separate ranges of code points, and kinds of characters (letters of `dDwWsS`)."""

    ranges: tuple[tuple[int, int], ...] = ()
    kinds: str = ""
    negated: bool = False

    @classmethod
    def of(cls, ranges: Iterable[tuple[int, int]], kinds: str = "", *, negated: bool = False) -> "Charset":
        """Make a set from ranges in any order."""
        merged: list[tuple[int, int]] = []
        for low, high in sorted(ranges):
            if merged and low <= merged[-1][1] + 1:
                merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
            else:
                merged.append((low, high))
        return cls(tuple(merged), "".join(sorted(set(kinds))), negated)

    def holds(self, char: str, variants: Iterable[str]) -> bool:
        """Return whether a character is in the set. `variants` are the characters that are equal to it."""
        return self.negated is not (
            any(is_kind(char, kind) for kind in self.kinds) or any(self._covers(ord(variant)) for variant in variants)
        )

    def _covers(self, code: int) -> bool:
        place = bisect_right(self.ranges, (code, 0x110000)) - 1
        return place >= 0 and code <= self.ranges[place][1]


def is_kind(char: str, kind: str) -> bool:
    match kind.lower():
        case "d":
            found = char.isdecimal()
        case "w":
            found = is_word(char)
        case _:
            found = char.isspace()
    return found is kind.islower()


def is_word(char: str) -> bool:
    return char.isalnum() or char == "_"


def variants_of(char: str) -> set[str]:
    """Return the characters that equal one when case is ignored, including itself."""
    if char.lower() == char.upper():
        return {char}
    variants = forms_of(char)
    return variants.union(*(special_forms().get(each, ()) for each in variants))


def forms_of(char: str) -> set[str]:
    """Return a character's other cases that are a single character."""
    forms, added = {char}, {char}
    while added:
        cases = {case for each in added for case in (each.lower(), each.upper(), each.title(), each.casefold())}
        added = {case for case in cases if len(case) == 1} - forms
        forms |= added
    return forms


@cache
def special_forms() -> dict[str, set[str]]:
    """Map letters to their second lowercase forms: `S` has the long s."""
    found: dict[str, set[str]] = {}
    for special in SPECIAL:
        for form in forms_of(special):
            found.setdefault(form, set()).add(special)
    return found
