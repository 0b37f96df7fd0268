"""The price of a million turns in docs/costs.md."""

import re
from pathlib import Path

from infra.bench.scale import price

COSTS = (Path(__file__).parents[3] / "docs" / "costs.md").read_text()


def cells(row: str) -> list[float]:
    return [float(cell) for cell in re.findall(r"\$([\d.]+)", row)]


def test_the_price_of_a_million_turns_is_documented() -> None:
    table = price.table()

    assert table in COSTS
    rows = {row.split(" | ")[0].strip("| "): cells(row) for row in table.splitlines()[2:]}
    waiting, long = rows["memory while waiting"][1], rows["sum"][1]
    assert f"{waiting / long:.0%} of 30 s".replace("%", " %") in COSTS
    parts = 5 * 0.625
    assert f"30 s cost ${long - parts:.2f}." in COSTS
