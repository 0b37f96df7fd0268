"""The commit, by which samples of tests are chosen, and the files that changed.

A sample that depends on the commit is the same whenever one commit is tested, and another one at the next commit.
"""

import os
import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
MAIN = ("origin/main", "main")
"""Names of the branch into which others are merged."""


def run_git(*arguments: str, root: Path = ROOT) -> str | None:
    """Return what git prints, or None without git, or if it fails."""
    try:
        done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


@cache
def commit_number(root: Path = ROOT) -> int:
    """Return a number that is the same for each run of a commit: 0 without git."""
    head = run_git("rev-parse", "HEAD", root=root)
    return int(head[:8], 16) if head else 0


def base_commit(root: Path = ROOT) -> str | None:
    """Return the commit to compare with: BASE, or where the branch began, or on the main branch the parent.

    None if there is none, as in a clone without history.
    """
    if base := os.environ.get("BASE"):
        return run_git("rev-parse", "--verify", f"{base}^{{commit}}", root=root)
    head = run_git("rev-parse", "HEAD", root=root)
    for branch in MAIN:
        began = run_git("merge-base", "HEAD", branch, root=root)
        if began and began != head:
            return began
    return run_git("rev-parse", "--verify", "HEAD^", root=root)


def changed_files(base: str | None, root: Path = ROOT) -> set[str] | None:
    """Return the files that differ from a commit, with those that are not committed. None if git cannot tell."""
    if base is None:
        return None
    changed = run_git("diff", "--name-only", "--no-renames", base, root=root)
    added = run_git("ls-files", "--others", "--exclude-standard", root=root)
    return None if changed is None or added is None else {*changed.splitlines(), *added.splitlines()}
