"""The tree of another commit, with the dependencies that it locks."""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from infra.local.engine import ROOT
from infra.local.errors import LocalCloudError

DEVELOPMENT = "requirements/dev.txt"
ENGINE = "requirements/ministack.txt"


@dataclass(frozen=True)
class Tree:
    """A checked-out commit, and the interpreter that has its dependencies."""

    name: str
    root: Path
    python: Path


def this_tree() -> Tree:
    """Return the tree that this code belongs to, with its changes."""
    return Tree("this", ROOT, Path(sys.executable))


@contextmanager
def base_tree(commit: str) -> Iterator[Tree]:
    """Check a commit out into a temporary worktree, and remove it at the end.

    The current environments serve it if it locks the same packages. Otherwise its own are installed.

    Raises:
        LocalCloudError: there is no such commit, or git or the installation fails.
    """
    found = resolve(commit)
    with tempfile.TemporaryDirectory(prefix="stint-base-") as folder:
        root = Path(folder) / "tree"
        git("worktree", "add", "--quiet", "--detach", str(root), found)
        try:
            engine = environment(root, ENGINE, Path(folder) / "engine", ROOT / ".venv-ministack" / "bin" / "python")
            (root / ".venv-ministack").symlink_to(engine.parents[1])
            python = environment(root, DEVELOPMENT, Path(folder) / "venv", Path(sys.executable))
            yield Tree(found[:9], root, python)
        finally:
            git("worktree", "remove", "--force", str(root))


def resolve(commit: str) -> str:
    """Return the full id of a commit. Raises LocalCloudError if there is none."""
    # `--end-of-options`, because a name such as `--help` is no option here.
    command = ["git", "rev-parse", "--quiet", "--verify", "--end-of-options", f"{commit}^{{commit}}"]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if answer.returncode:
        raise LocalCloudError(
            f"BASE is {commit!r}, which is no commit of this repository: use an id, tag or branch that git log knows."
        )
    return answer.stdout.strip()


def environment(root: Path, lock: str, folder: Path, current: Path) -> Path:
    """Return an interpreter with the packages of a lock file: the current one if it locks the same."""
    if (root / lock).read_bytes() == (ROOT / lock).read_bytes():
        return current
    print(f"Installing {lock} of the base ...", flush=True)
    uv = [sys.executable, "-m", "uv"]
    python = folder / "bin" / "python"
    run([*uv, "venv", "--quiet", "--python", sys.executable, str(folder)])
    install = ["pip", "install", "--quiet", "--require-hashes", "--no-deps", "--python", str(python)]
    run([*uv, *install, "-r", str(root / lock)])
    return python


def git(*arguments: str) -> None:
    run(["git", *arguments])


def run(command: list[str]) -> None:
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if answer.returncode:
        raise LocalCloudError(f"{' '.join(command[:3])} failed: {answer.stderr.strip()}")
