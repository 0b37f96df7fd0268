"""The receipt in docs/budgets.md has the prices of the same document."""

import json
import re
from pathlib import Path

from stint.domain.inference import Usage
from stint.domain.prices import parse_prices
from stint.domain.receipts import Receipt

TEXT = (Path(__file__).parents[2] / "docs" / "budgets.md").read_text()
RECEIPT, PRICES = re.findall(r"```json\n(.*?)```", TEXT, re.DOTALL)[:2]


def test_the_dollars_of_the_receipt_are_those_of_its_counts() -> None:
    receipt, prices = Receipt.model_validate_json(RECEIPT), parse_prices(PRICES)
    [model] = re.findall(r"It is that of `(\S+)`", TEXT)
    price, usage = prices.find(model), Usage.model_validate(json.loads(RECEIPT))
    assert price is not None
    counted = (receipt.write_units, receipt.read_units, receipt.milliseconds, receipt.memory_mb)

    assert receipt.model_dollars == round(price.cost_of(usage), 6)
    assert receipt.infrastructure_dollars == round(prices.infrastructure.cost_of(*counted), 6)
    assert receipt.dollars == round(receipt.model_dollars + receipt.infrastructure_dollars, 6)
    assert f"would have cost {price.cost_of(usage.without_cache()):.6f}" in TEXT
