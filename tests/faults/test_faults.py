"""Each call of each scenario fails or is the last one of its process: nothing is lost, stuck, or doubled."""

from collections.abc import Callable, Sequence

import pytest
from tests.faults.cloud import FaultyCloud
from tests.faults.fault_proxy import DEATHS, ERRORS, FaultKind
from tests.faults.points import LEFT_OUT, PROPERTY, report, try_points
from tests.faults.scenario import Scenario
from tests.faults.scenarios import SCENARIOS

pytestmark = pytest.mark.timeout(900)
Record = Callable[[str, object], None]

CASES = [pytest.param(kind, id=kind.name) for kind in SCENARIOS]


@pytest.mark.parametrize("kind", CASES)
def test_deaths(kind: type[Scenario], faulty_cloud: FaultyCloud, record_property: Record) -> None:
    check(kind, faulty_cloud, record_property, DEATHS)


@pytest.mark.parametrize("kind", CASES)
def test_errors(kind: type[Scenario], faulty_cloud: FaultyCloud, record_property: Record) -> None:
    check(kind, faulty_cloud, record_property, ERRORS)


def check(kind: type[Scenario], cloud: FaultyCloud, record_property: Record, kinds: Sequence[FaultKind]) -> None:
    points, left_out = try_points(kind, cloud, kinds)
    record_property(LEFT_OUT, left_out)
    record_property(PROPERTY, [point.to_property() for point in points])
    broken = [point for point in points if point.findings]
    assert points
    assert not broken, report(points, broken)
