"""Commands of CONTRIBUTING.md select tests that exist."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
SELECTION = re.compile(r"pytest .*?(tests/\S+) -k (\w+)")


def test_a_selection_of_tests_by_a_word_finds_some() -> None:
    selections = SELECTION.findall((ROOT / "CONTRIBUTING.md").read_text())

    assert selections
    for folder, word in selections:
        texts = [path.read_text() for path in (ROOT / folder).rglob("test_*.py")]
        assert any(re.search(rf"def test_\w*{word}", text) for text in texts), f"{folder} -k {word}"
