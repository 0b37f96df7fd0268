"""No request of 6 MB or less may keep the event loop, the CPU or the memory for long, whatever it holds."""

import os
from collections.abc import Callable
from dataclasses import asdict
from importlib import import_module
from pathlib import Path

import pytest
from tests.adversarial.api import MeasuredApi
from tests.adversarial.case import CASES
from tests.adversarial.summary import PROPERTY

for path in sorted(Path(__file__).parent.glob("*_cases.py")):
    import_module(f"tests.adversarial.{path.stem}")  # registers its cases

MOST_STRETCH = 1.0
MOST_CPU = 5.0
MOST_GROWN = 64_000_000 if os.environ.get("STINT_MAX_REQUEST_BYTES") else 100_000_000
"""With smaller requests, a function of 128 MB has this much left, besides the process itself."""


@pytest.mark.parametrize("name", CASES)
def test_a_hostile_request_costs_little(
    measured_api: MeasuredApi, pace: float, name: str, record_property: Callable[[str, object], None]
) -> None:
    costs = measured_api.run(CASES[name])

    record_property(PROPERTY, {request: asdict(each) for request, each in costs.items()})
    for request, each in costs.items():
        assert each.stretch <= MOST_STRETCH * pace, request
        assert each.cpu <= MOST_CPU * pace, request
        assert each.grown <= MOST_GROWN, request
