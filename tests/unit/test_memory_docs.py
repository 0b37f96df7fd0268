"""The table of docs/memory.md is that of the command that it names, and has the default."""

import re
from pathlib import Path

import pytest
from infra.bench.cost import SIZES, cpu_seconds_at, dollars, table
from tests.adversarial.sizes import default_megabytes

TEXT = (Path(__file__).parents[2] / "docs" / "memory.md").read_text()
COMMANDS = re.findall(r"^PYTHONPATH=\S+ \S+ -m infra\.bench\.cost (\S+) (\S+) (\S+) (\S+)$", TEXT, re.MULTILINE)


def test_the_document_has_the_table_of_its_command() -> None:
    [arguments] = COMMANDS
    assert table(*map(float, arguments)) in TEXT


def test_the_document_has_the_default_of_the_template() -> None:
    assert default_megabytes() in SIZES
    assert f"sets it: {default_megabytes()} MB by default" in TEXT


def test_a_share_of_a_core_takes_longer_and_costs_the_same() -> None:
    assert cpu_seconds_at(20, 1769) == pytest.approx(0.02)
    assert cpu_seconds_at(20, 1769 // 4) == pytest.approx(0.08, rel=0.01)
    assert dollars(20, 0, 128) == pytest.approx(dollars(20, 0, 1769))


def test_waiting_costs_in_proportion_to_memory() -> None:
    assert dollars(0, 3, 256) == pytest.approx(2 * dollars(0, 3, 128))
