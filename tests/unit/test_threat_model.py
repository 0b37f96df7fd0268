"""Each control in the threat model has a test."""

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
MODEL = (TESTS.parent / "docs/security.md").read_text().split("\n## Threats and their tests\n")[1]
NAMED = re.findall(r"^  `([a-z0-9_/]+\.py)::(test_\w+)`$", MODEL, re.MULTILINE)


def test_every_control_names_a_test() -> None:
    threats = re.findall(r"^- .*: .*\.\n  `", MODEL, re.MULTILINE)

    assert len(NAMED) == len(threats) == MODEL.count(".py") > 10


@pytest.mark.parametrize(("file", "name"), NAMED)
def test_the_named_test_exists(file: str, name: str) -> None:
    assert f"def {name}" in (TESTS / file).read_text()
