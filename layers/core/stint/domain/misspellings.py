"""Misspelled names of fields.

A name is the misspelling of another if its words are, one by one, so that neighbours in meaning are none: `top_k` is
not `top_p`, and `min_tokens` not `max_tokens`.

    letters of the known word     edits
    3 or fewer                    0
    4                             1, unless it is the whole name
    5 to 7                        1
    8 or more                     2

An edit inserts, removes or replaces a letter, or exchanges two neighbours. Names that differ in case and underscores
only are misspellings, too.
"""

from collections.abc import Iterable
from functools import partial

LONGEST_NAME = 64
"""Maximum characters of a name that is compared. No field has half of them."""


def find_intended(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that a name misspells; None if there is none, or the name is longer than 64 characters."""
    if len(name) > LONGEST_NAME:
        return None
    return next((each for each in sorted(known) if misspells(name, each)), None)


def misspells(name: str, known: str) -> bool:
    """Return whether a name is the misspelling of a known one."""
    if abs(len(name) - len(known)) > len(known) // 2:
        return False
    if name.replace("_", "").lower() == known.replace("_", "").lower():
        return True
    words, expected = name.lower().split("_"), known.split("_")
    shortest = 4 if len(expected) > 1 else 5
    return len(words) == len(expected) and all(map(partial(is_near, shortest=shortest), words, expected))


def is_near(word: str, expected: str, *, shortest: int) -> bool:
    """Return whether a word has as few edits as its length allows. Only one of `shortest` letters may have any."""
    if word == expected:
        return True
    most = 0 if len(expected) < shortest else 1 if len(expected) < 8 else 2
    return abs(len(word) - len(expected)) <= most and count_edits(word, expected) <= most


def count_edits(word: str, other: str) -> int:
    """Return the edits between two words (optimal string alignment)."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(word, 1):
        older, before, row = before, row, [i]
        for j, expected in enumerate(other, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != expected))
            if i > 1 and j > 1 and letter == other[j - 2] and word[i - 2] == expected:
                cost = min(cost, older[j - 2] + 1)
            row.append(cost)
    return row[-1]
