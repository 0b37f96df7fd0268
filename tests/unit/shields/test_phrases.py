import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stint.regex.budget import Budget
from stint.shields import folding
from stint.shields.folding import fold, fold_pieces
from stint.shields.phrases import Phrases
from stint.shields.texts import is_in_word

ALPHABET = (
    "abAB .+-\n\u00e9e\u0301\u0323\u200b\u3000\uff41\u00df\ufb03\u4e00\u1100\u1161\u11a8\uac00i\u0130\u09c7\u09be"
)
TEXTS = st.text(alphabet=ALPHABET, max_size=40)
PHRASES = st.lists(st.text(alphabet=ALPHABET, max_size=4), max_size=6)


def fold_whole(text: str) -> str:
    visible = "".join(char for char in text if unicodedata.category(char) != "Cf")
    return " ".join(unicodedata.normalize("NFKC", visible).split()).casefold()


def contains(text: str, phrase: str, *, whole_words: bool) -> bool:
    place = text.find(phrase) if phrase else -1
    while place >= 0:
        ends = (place, place + len(phrase))
        if not whole_words or not any(0 < end < len(text) and joined(text[end - 1], text[end]) for end in ends):
            return True
        place = text.find(phrase, place + 1)
    return False


def joined(before: str, after: str) -> bool:
    return is_in_word(before) and is_in_word(after)


@given(TEXTS, st.integers(1, 10))
def test_pieces_make_the_text_that_folding_the_whole_makes(text: str, size: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(folding, "PIECE", size)
        pieces = list(fold_pieces(text, case=False))

    assert "".join(pieces).strip() == fold_whole(text)


@given(TEXTS, PHRASES, st.booleans(), st.integers(1, 50))
def test_phrases_are_found_where_a_search_for_each_finds_them(
    text: str, phrases: list[str], whole_words: bool, size: int
) -> None:
    folded = [fold_whole(phrase) for phrase in phrases]
    expected = [
        place for place, phrase in enumerate(folded) if contains(fold_whole(text), phrase, whole_words=whole_words)
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(folding, "PIECE", size)
        found = Phrases(folded, whole_words=whole_words).find(fold_pieces(text, case=False), Budget(10_000_000))

    assert found in expected if expected else found is None


def test_of_phrases_that_end_at_one_place_the_first_of_the_list_is_named() -> None:
    phrases = Phrases(["b", "a b", "a b"], whole_words=True)

    assert phrases.find(["a b"], Budget(9)) == 0
    assert Phrases(["x", "a b", "b"], whole_words=True).find(["a b"], Budget(9)) == 1


def test_marks_that_no_text_has_in_such_numbers_are_left_out() -> None:
    """Normalization would sort them in a time that grows with the square of their number."""
    assert fold("e" + "\u0301\u0323" * 5_000, case=True) == unicodedata.normalize("NFKC", "e" + "\u0301\u0323" * 15)
