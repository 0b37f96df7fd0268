"""The break-even of docs/managed-instances.md."""

from pathlib import Path

import pytest
from infra.scripts.break_even import Prices, main, report

DOCS = Path(__file__).parents[2] / "docs" / "managed-instances.md"


def test_the_docs_show_what_the_command_prints(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0

    printed = capsys.readouterr().out
    assert printed.strip() == report(Prices())
    assert printed in DOCS.read_text()


def test_the_docs_name_the_prices_of_the_command() -> None:
    text, prices = DOCS.read_text(), Prices()

    for value in (f"${prices.gb_second:.10f}", f"{prices.memory_gb} GB", f"${prices.instance_hour}"):
        assert f"| {value} |" in text
    assert f"| {prices.fee:.0%}".replace("%", " %") in text


def test_both_ways_cost_the_same_at_the_break_even() -> None:
    prices = Prices(gb_second=0.00002, memory_gb=0.5, instance_hour=0.1, instances=4, fee=0.1, discount=0.3)

    assert prices.streams * prices.stream_hour == pytest.approx(4 * 0.1 * 0.8)
    assert prices.turns(10) == pytest.approx(prices.streams / 10)


def test_a_discount_lowers_the_break_even_and_less_memory_raises_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert Prices(discount=0.3).streams < Prices().streams < Prices(memory_gb=0.125).streams

    main(["--memory-gb", "0.125"])

    assert "46.9" in capsys.readouterr().out
