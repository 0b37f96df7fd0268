"""Each message in docs/troubleshooting.md is one that the code has."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "troubleshooting.md").read_text()
FOLDERS = ("layers/core/stint", "infra/local", "infra/scripts")
MESSAGES = [re.sub(r"\s+", " ", each) for each in re.findall(r"\*\*`([^`]+)`\*\*", PAGE)]


def texts(tree: ast.AST) -> Iterator[str]:
    """Yield the texts of code, in which each value of an f-string is `...`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "..." for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


@pytest.fixture(scope="module")
def source() -> str:
    files = [file for folder in FOLDERS for file in (ROOT / folder).rglob("*.py")]
    python = "\n".join(text for file in files for text in texts(ast.parse(file.read_text())))
    return "\n".join([python, (ROOT / "Makefile").read_text()])


@pytest.mark.parametrize("message", MESSAGES)
def test_each_message_is_in_the_code(message: str, source: str) -> None:
    parts = re.split(r"\.\.\.|[:()]", message)  # a value of the message may end at each of them
    missing = [part.strip() for part in parts if part.strip() not in source]

    assert missing == []


def test_the_messages_are_found() -> None:
    assert len(MESSAGES) > 35
