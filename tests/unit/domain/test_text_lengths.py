from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stint.domain.text_lengths import cut_text, encode_lengths


@given(st.lists(st.text(min_size=1, max_size=100), max_size=30), st.integers(1, 9))
def test_a_text_is_cut_into_its_pieces_again(pieces: list[str], times: int) -> None:
    pieces *= times

    assert cut_text("".join(pieces), encode_lengths(map(len, pieces))) == pieces


def test_usual_pieces_take_a_character_each_and_equal_ones_a_count() -> None:
    assert encode_lengths([4, 1, 35, 61, 62, 1000]) == "41zZ(62)(1000)"
    assert encode_lengths([3] * 100_000) == "3*100000."


@pytest.mark.parametrize("lengths", [[], [1], [5000]])
def test_a_text_in_one_piece_needs_no_lengths(lengths: list[int]) -> None:
    assert encode_lengths(lengths) is None


@pytest.mark.parametrize("lengths", [None, "", "1", "9", "0*9.", "(0)", "3*999999999.", "(999999999)", "x*", "\u0663"])
def test_a_text_whose_lengths_do_not_fit_is_one_piece(lengths: str | None) -> None:
    assert cut_text("four", lengths) == ["four"]
    assert cut_text("", lengths) == []


def test_pieces_are_cut_between_characters_not_bytes() -> None:
    pieces = cut_text("\u00e4\U0001f600\u00f6", "111")

    assert all(len(one) == len(other) == 1 for one, other in pairwise(pieces))
