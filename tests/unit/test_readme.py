"""Statements of the README are true."""

import random
import re
from pathlib import Path

import pytest
from infra.bench.scale.price import table

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
CODE = "\n".join(re.findall(r"```sh\n.*?```|`[^`\n]+`", README, flags=re.DOTALL))


MOST_BYTES = 8_192
TARGETS = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)


def test_the_readme_is_short() -> None:
    assert len(README.encode()) <= MOST_BYTES


@pytest.mark.parametrize("target", re.findall(r"(?:^|`|\s)make ([a-z-]+)(?=[` \n])", CODE))
def test_each_make_target_that_the_readme_names_exists(target: str) -> None:
    assert target in TARGETS


def test_the_price_of_turns_is_what_the_command_prints() -> None:
    random_state = random.getstate()
    (row,) = re.findall(r"^\| a thousand turns \| (.*) \|$", table(), flags=re.MULTILINE)
    random.setstate(random_state)

    assert f"| {row} |" in README
    assert table() in (ROOT / "docs" / "costs.md").read_text()
