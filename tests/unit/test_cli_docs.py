"""The commands of operators in the documentation exist, with their options."""

import re
import shlex
from pathlib import Path

import pytest

from stint.cli.command_line import make_parser

ROOT = Path(__file__).parents[2]
PAGES = [page.read_text() for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md"))]
MADE = [command for page in PAGES for command in re.findall(r'^make cli CLI="(.*)"$', page, re.MULTILINE)]
TYPED = [command for page in PAGES for command in re.findall(r"^PYTHONPATH=.* -m stint\.cli (.*)$", page, re.MULTILINE)]


@pytest.mark.parametrize("command", [*MADE, *(each for each in TYPED if not each.endswith("\\"))])
def test_the_command_line_has_this_command(command: str) -> None:
    make_parser().parse_args(shlex.split(command.partition(" > ")[0]))


def test_commands_of_both_forms_are_found() -> None:
    assert len(MADE) > 4
    assert len(TYPED) > 4
