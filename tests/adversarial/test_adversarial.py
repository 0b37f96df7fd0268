"""No request of 6 MB or less may keep the event loop, the CPU or the memory for long, whatever it holds."""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from importlib import import_module
from pathlib import Path

import pytest
from tests.adversarial.api import MeasuredApi
from tests.adversarial.case import CASES
from tests.adversarial.meter import Costs
from tests.adversarial.sizes import MOST_GROWN
from tests.adversarial.summary import PROPERTY

for path in sorted(Path(__file__).parent.glob("*_cases.py")):
    import_module(f"tests.adversarial.{path.stem}")  # registers its cases

MOST_STRETCH = 1.0
MOST_CPU = 5.0
MOST_RUNS = 3
"""Other processes on the machine can only add to the costs, so the least of several runs counts."""


@pytest.mark.parametrize("name", CASES)
def test_a_hostile_request_costs_little(
    measured_api: MeasuredApi, pace: float, name: str, record_property: Callable[[str, object], None]
) -> None:
    costs = measured_api.run(CASES[name])
    for _ in range(MOST_RUNS - 1):
        if not find_excess(costs, pace):
            break
        costs = keep_least(costs, measured_api.run(CASES[name]))

    record_property(PROPERTY, {request: asdict(each) for request, each in costs.items()})
    assert not find_excess(costs, pace)


def find_excess(costs: Mapping[str, Costs], pace: float) -> dict[str, Costs]:
    """Return the requests that exceed a limit. On a slower processor, they may use more CPU time."""
    most = Costs(stretch=MOST_STRETCH * pace, cpu=MOST_CPU * pace, grown=MOST_GROWN)
    return {request: each for request, each in costs.items() if least(each, most) != each}


def keep_least(costs: Mapping[str, Costs], again: Mapping[str, Costs]) -> dict[str, Costs]:
    """Return the least costs of each request in two runs of the same case."""
    pairs = zip(costs.items(), again.values(), strict=True)
    return {request: least(first, second) for (request, first), second in pairs}


def least(first: Costs, second: Costs) -> Costs:
    return Costs(min(first.stretch, second.stretch), min(first.cpu, second.cpu), min(first.grown, second.grown))
