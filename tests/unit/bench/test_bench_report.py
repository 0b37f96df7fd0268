"""The tables of the benchmark."""

from infra.bench.report import Row, render


def test_a_required_ratio_is_printed_beside_the_measured_one() -> None:
    table = render("Turn", "ours", "floor", [Row("one", "ms", [4, 6], [2, 3], 2.1), Row("other", "ms", [1], [2])])

    _, title, one, other = table.splitlines()
    assert title.split()[-2:] == ["at", "most"]
    assert one.split() == ["one", "5.0", "ms", "2.5", "ms", "2.00", "2.10"]
    assert other.split() == ["other", "1.0", "ms", "2.0", "ms", "0.50"]


def test_the_ratio_of_pairs_is_the_median_of_their_ratios() -> None:
    runs = ([2.0, 20.0, 6.0], [1.0, 10.0, 4.0])

    assert Row("pairs", "ms", *runs, paired=True).ratio() == "2.00"
    assert Row("medians", "ms", *runs).ratio() == "1.50"
