"""Normalization of texts in linear time."""

import unicodedata
from collections.abc import Iterator

MOST_MARKS = 30
"""Maximum combining marks in a row, as in Unicode's Stream-Safe Text Format (UAX #15, section 13).

`unicodedata` sorts them in quadratic time.
"""


def normalize(text: str) -> str:
    """Return a text in NFKC, without the excess of long runs of combining marks."""
    if text.isascii():
        return text
    kept, begin = [], 0
    for end, following in long_runs(text):
        kept.append(text[begin:end])
        begin = following
    return unicodedata.normalize("NFKC", "".join([*kept, text[begin:]]))


def long_runs(text: str) -> Iterator[tuple[int, int]]:
    """Yield the excess of each run of more than MOST_MARKS combining marks.

    Such a run has a mark at one of any MOST_MARKS + 1 positions in a row, so most characters are skipped.
    """
    place = 0
    while place < len(text):
        begin = end = place
        while end < len(text) and unicodedata.combining(text[end]):
            end += 1
        while begin and unicodedata.combining(text[begin - 1]) and end > place:
            begin -= 1
        if end - begin > MOST_MARKS:
            yield begin + MOST_MARKS, end
        place = end + MOST_MARKS
