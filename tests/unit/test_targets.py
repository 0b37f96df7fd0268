"""Each test file is run by one target of the Makefile."""

import re
from collections import Counter
from pathlib import Path

from tests.shares import FileShares

ROOT = Path(__file__).parents[2]
MAKEFILE = (ROOT / "Makefile").read_text().replace("\\\n", " ")
OWN_TARGETS = ("tests/clients", "tests/october", "tests/deploy")
"""Folders that are in the recipe of their target."""

RECOVERY = ("tests/services/recovery", "tests/services")
"""The part of a folder that another target runs."""


def listed() -> dict[str, list[str]]:
    """Return the variables that list tests of targets other than `make test`."""
    found = re.findall(r"^([A-Z_]+) := (tests/.*)$", MAKEFILE, re.MULTILINE)
    return {name: paths.split() for name, paths in found}


def recipe_of(target: str) -> str:
    match = re.search(rf"^{target}:.*\n((?:\t.*\n)+)", MAKEFILE, re.MULTILINE)
    assert match
    return match[1]


def test_each_file_is_in_one_target() -> None:
    paths = [path for paths in listed().values() for path in paths] + list(OWN_TARGETS)

    assert [path for path in paths if not (ROOT / path).exists()] == []
    assert [(a, b) for a in paths for b in paths if a != b and f"{a}/".startswith(f"{b}/")] == [RECOVERY]
    assert f"--ignore {RECOVERY[0]}" in recipe_of("test-services")
    assert len(paths) == len(set(paths))


def test_what_other_targets_run_is_ignored_by_the_first() -> None:
    first, ci = recipe_of("test"), (ROOT / ".ci" / "run").read_text()
    targets = re.findall(
        r"(?<= )test[a-z-]*\b", "\n".join(line for line in ci.splitlines() if line.startswith("make "))
    )

    for name in listed():
        assert f"$({name}:%=--ignore %)" in first
        assert sum(f"$({name})" in recipe_of(target) for target in targets) == 1
    for path in OWN_TARGETS:
        assert f"--ignore {path}" in first
        assert sum(f" {path}" in recipe_of(target).replace("--ignore ", "--ignore=") for target in targets) == 1


def test_the_name_of_a_test_file_is_unique() -> None:
    names = Counter(file.name for file in (ROOT / "tests").rglob("test_*.py") if "node_modules" not in file.parts)

    assert [name for name, count in names.items() if count > 1] == []


def test_the_tests_of_processes_do_not_move_the_clock() -> None:
    paths = [ROOT / path for path in listed()["PROCESSES"]]
    files = [file for path in paths for file in (path.rglob("*.py") if path.is_dir() else [path])]

    assert len(files) > 50
    assert [file.name for file in files if "tests.clock" in file.read_text()] == []


def test_the_shares_of_workers_are_about_equal() -> None:
    files = sorted((ROOT / "tests" / "unit").rglob("test_*.py"))
    first, second = FileShares(3), FileShares(3)

    numbers = [first.number(file) for file in files]

    assert [second.number(file) for file in files for _ in range(2)] == [number for number in numbers for _ in range(2)]
    assert max(first.sizes) < 1.2 * min(first.sizes)
