"""The cut of a history that is too long is the same for all processes, and moves rarely."""

from hypothesis import given
from hypothesis import strategies as st

from stint.domain.history_cut import choose_first

SIZES = st.lists(st.integers(min_value=0, max_value=100), min_size=1, max_size=60)


def names(count: int) -> list[str]:
    return [f"turn_{place}" for place in range(count)]


@given(sizes=SIZES, max_size=st.integers(min_value=1, max_value=2_000))
def test_what_is_kept_fits_or_is_the_last_entry(sizes: list[int], max_size: int) -> None:
    first = choose_first(names(len(sizes)), sizes, max_size)

    assert sum(sizes[first:]) <= max_size or first == len(sizes) - 1


@given(sizes=SIZES, max_size=st.integers(min_value=50, max_value=1_000))
def test_a_process_that_knows_the_kept_entries_cuts_as_one_that_reads_all(sizes: list[int], max_size: int) -> None:
    ids, known = names(len(sizes)), 0
    for count in range(1, len(sizes) + 1):
        whole = choose_first(ids[:count], sizes[:count], max_size)
        known += choose_first(ids[known:count], sizes[known:count], max_size)
        assert known == whole


def test_the_cut_moves_a_few_times_while_the_whole_history_is_replaced() -> None:
    ids = names(2_000)
    cuts = [choose_first(ids[:count], [1] * count, 100) for count in range(100, 2_001)]

    assert len(set(cuts)) < 1_900 / 50 * 3
    assert all(50 <= count - cut <= 100 for count, cut in zip(range(100, 2_001), cuts, strict=True))
