from collections.abc import Iterator
from typing import Any

import pytest
from infra.local.engine import Engine
from tests.faults.cloud import FaultyCloud
from tests.faults.points import LEFT_OUT, PROPERTY, summarize
from tests.faults.scenarios import WARMING


@pytest.fixture(scope="session")
def faulty_cloud(engine: Engine) -> Iterator[FaultyCloud]:
    with FaultyCloud(engine) as cloud:
        with cloud.warm() as api:
            for kind in WARMING:
                scenario = kind(cloud)
                scenario.prepare(api)
                scenario.act(api)
                if not kind.has_work:
                    list(scenario.check(api))
        yield cloud


def pytest_unconfigure(config: Any) -> None:
    """Print how many points were tried, and how many broke a promise."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    stats = reporter.stats if reporter else {}
    reports = [report for kind in ("passed", "failed", "xfailed", "xpassed") for report in stats.get(kind, [])]
    properties = [each for report in reports for each in report.user_properties]
    tried = [point for name, value in properties if name == PROPERTY for point in value]
    left_out = sum(value for name, value in properties if name == LEFT_OUT)
    for line in summarize(tried, left_out) if tried else ():
        reporter.line(line)
