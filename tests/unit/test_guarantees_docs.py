"""docs/guarantees.md names tests that exist, and every scenario."""

import re
from pathlib import Path

from tests.faults.scenarios import SCENARIOS

ROOT = Path(__file__).parents[2]
QUOTED = re.compile(r"`([^`]+)`")


def named_tests() -> set[str]:
    """Return the names in the last column of the table."""
    page = (ROOT / "docs" / "guarantees.md").read_text()
    rows = [line for line in page.splitlines() if line.startswith("| ") and line.count("|") == 3]
    return {name for row in rows for name in QUOTED.findall(row.split("|")[2])}


def test_each_named_test_exists() -> None:
    scenarios = {kind.name for kind in SCENARIOS}
    files = {name for name in named_tests() if name.startswith("tests/")}

    assert named_tests() - files - {"delete-...", "create-..."} <= scenarios
    assert [name for name in files if not (ROOT / name).exists()] == []


def test_each_scenario_shows_a_promise() -> None:
    groups = tuple(name.removesuffix("...") for name in named_tests() if name.endswith("..."))

    missing = [kind.name for kind in SCENARIOS if kind.name not in named_tests() and not kind.name.startswith(groups)]

    assert missing == []
