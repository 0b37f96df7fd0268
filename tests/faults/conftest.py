import os
from collections.abc import Iterator
from typing import Any

import pytest
from infra.local.engine import Engine
from tests.faults.cloud import FaultyCloud
from tests.faults.points import LEFT_OUT, PROPERTY, is_enough, sample_start, summarize
from tests.faults.scenarios import WARMING

WHOLE = "tests/faults"
os.environ["FAULTS_START"] = str(sample_start())  # workers inherit it, also if somebody commits while the tests run


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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the tests of a scenario beside each other, so that one process runs both, and counts its calls once."""
    places = [place for place, item in enumerate(items) if item.path.name == "test_faults.py"]
    tests = sorted((items[place] for place in places), key=lambda item: item.name.partition("[")[2])
    for place, test in zip(places, tests, strict=True):
        items[place] = test


def tried_points(config: Any) -> tuple[list[dict[str, Any]], int]:
    """Return the points that all tests have tried, and the number of those that are left out."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    stats = reporter.stats if reporter else {}
    reports = [report for kind in ("passed", "failed") for report in stats.get(kind, [])]
    properties = [each for report in reports for each in report.user_properties]
    tried = [point for name, value in properties if name == PROPERTY for point in value]
    return tried, sum(value for name, value in properties if name == LEFT_OUT)


def pytest_sessionfinish(session: Any) -> None:
    """Fail a run of all scenarios that tried too few points."""
    config = session.config
    whole = not config.option.keyword and "POINT" not in os.environ and WHOLE in config.args
    if whole and not hasattr(config, "workerinput") and session.exitstatus == 0:
        session.exitstatus = 0 if is_enough(tried_points(config)[0]) else 1


def pytest_unconfigure(config: Any) -> None:
    """Print how many points were tried, and how many broke a promise."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    tried, left_out = tried_points(config)
    for line in summarize(tried, left_out) if tried else ():
        reporter.line(line)
