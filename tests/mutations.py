"""Remove one protection at a time from a copy of the source, and check that a test fails."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
CORE = "layers/core/stint"
COPIED = ("docs", "events", "functions", "infra", "layers", "tests", "requirements")
LINKED = (".venv", ".venv-ministack")
FILES = ("pyproject.toml", "template.yaml", "Makefile")
SURVIVED, CAUGHT, BROKEN = "SURVIVED", "caught", "BROKEN"


@dataclass(frozen=True)
class Mutation:
    """A protection, the text that is its code, the text without it, and the tests that must fail.

    `tests` are a file, and options of pytest.
    """

    protection: str
    file: str
    code: str
    mutated: str
    tests: str


def make_copy(folder: Path) -> None:
    """Copy the tracked files that tests need into a folder."""
    listed = subprocess.run(["git", "ls-files", *COPIED, *FILES], cwd=ROOT, check=True, capture_output=True, text=True)
    for name in listed.stdout.splitlines():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    for name in LINKED:
        (folder / name).symlink_to(ROOT / name)


def apply(mutation: Mutation, folder: Path) -> str:
    """Remove a protection, and return the original source."""
    path = folder / mutation.file
    source = path.read_text()
    if mutation.code not in source:
        raise ValueError(f"{mutation.file} does not contain {mutation.code!r}. Change the mutation, too.")
    path.write_text(source.replace(mutation.code, mutation.mutated))
    return source


def run_tests(folder: Path, tests: str) -> int:
    """Return pytest's exit code: 1 if tests failed."""
    file, *options = tests.split()
    command = [str(ROOT / ".venv/bin/pytest"), "-q", "-n", "0", "-x", "--show-capture=no", file]
    environment = {**os.environ, "PYTHONPATH": f"{folder}/layers/core:{folder}/layers/runtime/python:{folder}"}
    done = subprocess.run([*command, *options], cwd=folder, env=environment, capture_output=True, check=False)
    return done.returncode


def judge(mutation: Mutation, folder: Path) -> str:
    """Return whether a test fails without the protection."""
    source = apply(mutation, folder)
    try:
        code = run_tests(folder, mutation.tests)
    finally:
        (folder / mutation.file).write_text(source)
    return {0: SURVIVED, 1: CAUGHT}.get(code, BROKEN)


def run_mutations(mutations: Sequence[Mutation], words: Sequence[str]) -> int:
    """Run the mutations whose protection contains one of the words, by default all. Return 0 if all are caught."""
    chosen = [each for each in mutations if not words or any(word in each.protection for word in words)]
    outcomes = []
    with tempfile.TemporaryDirectory(prefix="stint-mutations-") as name:
        make_copy(Path(name))
        for mutation in chosen:
            outcomes.append(judge(mutation, Path(name)))
            print(f"{outcomes[-1]:9} {mutation.protection}: {mutation.tests}", flush=True)
    caught = outcomes.count(CAUGHT)
    print(f"mutations: {caught} of {len(chosen)} caught")
    return 0 if caught == len(chosen) else 1
