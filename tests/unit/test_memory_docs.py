"""The tables of docs/memory.md are those of the command that they name."""

import re
from pathlib import Path

import pytest
from infra.bench.cost import dollars, seconds, table

TEXT = (Path(__file__).parents[2] / "docs" / "memory.md").read_text()
COMMANDS = re.findall(r"`python -m infra\.bench\.cost (\S+) (\S+)`", TEXT)


def test_the_document_has_the_tables_of_its_commands() -> None:
    assert len(COMMANDS) == 2
    for cpu_ms, wait in COMMANDS:
        assert table(float(cpu_ms), float(wait)) in TEXT


def test_a_share_of_a_core_takes_longer_and_costs_the_same() -> None:
    assert seconds(20, 3, 1769) == pytest.approx(3.02)
    assert seconds(20, 0, 1769 // 4) == pytest.approx(0.08, rel=0.01)
    assert dollars(20, 0, 128) == pytest.approx(dollars(20, 0, 1769))


def test_waiting_costs_in_proportion_to_memory() -> None:
    assert dollars(0, 3, 256) == pytest.approx(2 * dollars(0, 3, 128))
