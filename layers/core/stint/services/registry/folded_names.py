"""Folding of names, so that those which people cannot tell apart become equal."""

import re
import unicodedata
from collections.abc import Collection, Iterable

IGNORABLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffc\U0001107f\U00016fe4\U0001bca0-\U0001bca3\U0001d159"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""Default_Ignorable_Code_Point of Unicode 16 (DerivedCoreProperties.txt), interlinear annotations and the
replacement of objects, the blank of Braille, the number joiner of Brahmi, the filler of Khitan, and the null notehead.
None of them is visible.
"""

HIDDEN = ("Cf", "Cc", "Cn", "Co", "Zs", "Zl", "Zp")
"""The categories of control characters, blanks, and characters without a meaning: unassigned or for private use."""


def fold_name(name: str) -> str:
    """Return a name without case, and without what `show_name` removes."""
    return show_name(show_name(name).casefold())


def show_name(name: str) -> str:
    """Return a name without blanks, invisible characters, and differences of compatible characters.

    Characters are taken apart before invisible ones are removed, since these may separate a letter from its accent.
    """
    if name.isascii():
        return "".join(name.split())
    apart = IGNORABLE.sub("", unicodedata.normalize("NFKD", name))
    visible = (char for char in apart if unicodedata.category(char) not in HIDDEN)
    return unicodedata.normalize("NFKC", "".join(visible))


def find_lookalike(names: Iterable[str], known: Collection[str]) -> str | None:
    """Return a known name from which one of some names differs only by what `fold_name` removes.

    Names that are known are skipped. Each known name is folded once.
    """
    folded = {fold_name(each): each for each in sorted(known, reverse=True)}
    found = (folded.get(fold_name(name)) for name in names if name not in known)
    return next((name for name in found if name is not None), None)
