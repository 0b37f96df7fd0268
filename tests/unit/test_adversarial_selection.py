"""The hostile cases that a run of `make test-adversarial` includes."""

from pathlib import Path

import pytest
from tests.adversarial.selection import COVERED, OWN, PRODUCT, SHARES, Selection, choose, select

ROOT = Path(__file__).parents[2]
NAMES = [f"tests/adversarial/test_adversarial.py::test_it[{number}]" for number in range(400)]


@pytest.fixture(autouse=True)
def no_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ADVERSARIAL", "BASE"):
        monkeypatch.delenv(name, raising=False)


def test_every_file_with_cases_names_the_code_that_they_attack() -> None:
    files = {path.stem for pattern in ("*_cases.py", "test_*.py") for path in (ROOT / OWN).glob(pattern)}

    assert set(COVERED) == files - {"event_cases", "test_adversarial"}


def test_the_attacked_code_exists() -> None:
    places = [(file, place) for file, places in COVERED.items() for place in places]

    assert [each for each in places if not list((ROOT / PRODUCT).glob(f"{each[1]}*"))] == []


def test_each_case_is_in_one_share() -> None:
    shares = [Selection(share) for share in range(SHARES)]
    counts = [sum(share.has("tool_cases", name) for name in NAMES) for share in shares]

    assert sum(counts) == len(NAMES)
    assert min(counts) > len(NAMES) / SHARES / 2


def test_cases_of_changed_code_all_run() -> None:
    chosen = select(3, {f"{PRODUCT}jinja/template.py", f"{OWN}form_cases.py", "README.md"}, "abcdef")

    assert chosen.files == {"test_jinja_bounds", "test_regexes", "form_cases"}
    assert all(chosen.has("test_jinja_bounds", name) for name in NAMES)
    assert "ADVERSARIAL=3 BASE=abcdef make test-adversarial" in str(chosen)


@pytest.mark.parametrize("changed", [None, {"requirements/dev.txt"}, {f"{OWN}meter.py"}, {f"{OWN}event_cases.py"}])
def test_everything_runs_if_nobody_knows_what_changed_or_all_share_it(changed: set[str] | None) -> None:
    chosen = select(3, changed, "abcdef")

    assert chosen == Selection(None)
    assert all(chosen.has("tool_cases", name) for name in NAMES)


@pytest.mark.parametrize("value", ["", "all"])
def test_everything_runs_unless_a_sample_is_asked_for(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("ADVERSARIAL", value)

    assert choose() == Selection(None)


def test_a_share_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(ValueError, match="none of the shares 0 to 7"):
        select(8, set(), "")
