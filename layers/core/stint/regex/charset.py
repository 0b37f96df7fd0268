"""Sets of characters, as `[a-z\\d]`, `.` and single letters of a regular expression stand for them."""

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

SPECIAL = "\u0131\u017f\u03c2\u00b5\u0345\u1fbe\u03d0\u03d1\u03d5\u03d6\u03f0\u03f1\u03f5"
SPECIAL += "\u1e9b\u1c80\u1c81\u1c82\u1c83\u1c84\u1c85\u1c86\u1c87\u1c88"
"""Second small forms of letters, as the long s: by CaseFolding.txt of Unicode they fold to another small letter."""


@dataclass(frozen=True, slots=True)
class Charset:
    """Ranges of code points, sorted and apart, and kinds of characters (letters of `dDwWsS`)."""

    ranges: tuple[tuple[int, int], ...] = ()
    kinds: str = ""
    negated: bool = False

    @classmethod
    def of(cls, ranges: Iterable[tuple[int, int]], kinds: str = "", *, negated: bool = False) -> "Charset":
        """Make a set of ranges in any order."""
        merged: list[tuple[int, int]] = []
        for low, high in sorted(ranges):
            if merged and low <= merged[-1][1] + 1:
                merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
            else:
                merged.append((low, high))
        return cls(tuple(merged), "".join(sorted(set(kinds))), negated)

    def holds(self, char: str, variants: Iterable[str]) -> bool:
        """Return whether a character is in the set; `variants` are the characters that count as it."""
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
    """Return the characters that are the same as one when case is ignored, itself among them."""
    if char.lower() == char.upper():
        return {char}
    variants = forms_of(char)
    return variants.union(*(special_forms().get(each, ()) for each in variants))


def forms_of(char: str) -> set[str]:
    """Return what a character becomes in other cases, as far as that is one character."""
    forms, added = {char}, {char}
    while added:
        cases = {case for each in added for case in (each.lower(), each.upper(), each.title(), each.casefold())}
        added = {case for case in cases if len(case) == 1} - forms
        forms |= added
    return forms


@cache
def special_forms() -> dict[str, set[str]]:
    """Return the letters that others never become, by those that they become themselves: `S` has the long s."""
    found: dict[str, set[str]] = {}
    for special in SPECIAL:
        for form in forms_of(special):
            found.setdefault(form, set()).add(special)
    return found
