import unicodedata
from collections.abc import Callable, Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stint.regex.normalization import MOST_MARKS, normalize
from stint.retrieval.embedders.hashed import words_of
from stint.retrieval.words import words

MARKS = "\u0345\u0323" * 100_000
"""Marks that `unicodedata` sorts in quadratic time."""


@given(st.text(st.characters(exclude_categories=("Cs", "Mn"))))
def test_texts_without_long_runs_of_marks_are_in_nfkc(text: str) -> None:
    assert normalize(text) == unicodedata.normalize("NFKC", text)


def test_marks_beyond_the_thirtieth_in_a_row_are_dropped_before_they_are_sorted() -> None:
    assert normalize(f"a{MARKS}b") == unicodedata.normalize("NFKC", f"a{MARKS[:MOST_MARKS]}b")


@pytest.mark.parametrize("find_words", [words, words_of])
def test_words_of_retrieval_are_found_between_marks(find_words: Callable[[str], Iterable[str]]) -> None:
    found = list(find_words(f"one {MARKS} two"))

    assert (found[0], found[-1]) == ("one", "two")
    assert len(found) <= MOST_MARKS + 2
